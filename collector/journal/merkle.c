#include "collector/journal/merkle.h"

static struct digest node(const struct digest *left, const struct digest *right)
{
    const struct slice parts[] = {
        SLICE("\x01"),
        { .ptr = (const char *)left->bytes, .len = DIGEST_BYTES },
        { .ptr = (const char *)right->bytes, .len = DIGEST_BYTES },
    };

    return digest_of_parts(parts, sizeof(parts) / sizeof(parts[0]));
}

void merkle_init(struct merkle *m)
{
    m->leaves = 0;
    m->n = 0;
}

/* A leaf makes a pair with the subtree of its size, the pair with that of its size, and so on. */
void merkle_add(struct merkle *m, const struct digest *leaf)
{
    struct digest d = *leaf;

    for (uint64_t ones = m->leaves; ones & 1; ones >>= 1) {
        d = node(&m->roots[--m->n], &d);
    }
    m->roots[m->n++] = d;
    m->leaves++;
}

/* Unequal subtrees are joined from the right: the smaller ones together first. */
struct digest merkle_root(const struct merkle *m)
{
    if (m->n == 0) {
        return digest_of((struct slice){ 0 });
    }

    struct digest d = m->roots[m->n - 1];

    for (size_t i = m->n - 1; i > 0; i--) {
        d = node(&m->roots[i - 1], &d);
    }
    return d;
}

void merkle_prover_init(struct merkle_prover *p, uint64_t index)
{
    merkle_init(&p->tree);
    p->index = index;
    p->at = SIZE_MAX;
    p->path.n = 0;
}

static void add_sibling(struct merkle_path *path, const struct digest *d)
{
    path->nodes[path->n++] = *d;
}

/* As merkle_add(), and whoever is joined with the leaf's subtree is its sibling. */
void merkle_prover_add(struct merkle_prover *p, const struct digest *leaf)
{
    struct merkle *m = &p->tree;
    struct digest d = *leaf;
    bool mine = m->leaves == p->index;

    for (uint64_t ones = m->leaves; ones & 1; ones >>= 1) {
        struct digest left = m->roots[--m->n];

        if (mine) {
            add_sibling(&p->path, &left);
        } else if (p->at == m->n) {
            add_sibling(&p->path, &d);
            mine = true;
        }
        d = node(&left, &d);
    }
    if (mine) {
        p->at = m->n;
    }
    m->roots[m->n++] = d;
    m->leaves++;
}

bool merkle_prover_path(const struct merkle_prover *p, struct merkle_path *ret)
{
    const struct merkle *m = &p->tree;

    if (p->at == SIZE_MAX) {
        return false;
    }

    struct merkle right = { 0 }; /* the subtrees to the right of the leaf's: joined, one sibling */

    for (size_t i = p->at + 1; i < m->n; i++) {
        right.roots[right.n++] = m->roots[i];
    }
    *ret = p->path;
    if (right.n > 0) {
        struct digest d = merkle_root(&right);

        add_sibling(ret, &d);
    }
    for (size_t i = p->at; i > 0; i--) {
        add_sibling(ret, &m->roots[i - 1]);
    }
    return true;
}

bool merkle_path_holds(const struct merkle_path *path, uint64_t index, uint64_t leaves,
                       const struct digest *leaf, const struct digest *root)
{
    if (index >= leaves || path->n > MERKLE_LEVELS) {
        return false;
    }

    uint64_t at = index;
    uint64_t last = leaves - 1;
    struct digest d = *leaf;

    for (size_t i = 0; i < path->n; i++) {
        if (last == 0) {
            return false; /* longer than the tree is high */
        }
        if (at & 1 || at == last) {
            d = node(&path->nodes[i], &d);
            while (!(at & 1) && at != 0) {
                at >>= 1;
                last >>= 1;
            }
        } else {
            d = node(&d, &path->nodes[i]);
        }
        at >>= 1;
        last >>= 1;
    }
    return last == 0 && digest_equal(&d, root);
}

#include "collector/journal/merkle.h"

#include <string.h>

#include "tests/unit/unit.h"

enum { LEAVES_MAX = 70 }; /* past 64: six levels and some leaves over */

static struct digest leaf_of(struct slice record)
{
    const struct slice parts[] = { { .ptr = "", .len = 1 }, record };

    return digest_of_parts(parts, 2);
}

/* MTH of RFC 9162, 2.1.1, word for word: slow, and obviously right. */
static struct digest naive_root(const struct digest *leaves, size_t n)
{
    size_t k = 1;

    if (n == 0) {
        return digest_of((struct slice){ 0 });
    }
    if (n == 1) {
        return leaves[0];
    }
    while (k * 2 < n) {
        k *= 2;
    }

    struct digest left = naive_root(leaves, k);
    struct digest right = naive_root(leaves + k, n - k);
    const struct slice parts[] = {
        SLICE("\x01"),
        { .ptr = (const char *)left.bytes, .len = DIGEST_BYTES },
        { .ptr = (const char *)right.bytes, .len = DIGEST_BYTES },
    };

    return digest_of_parts(parts, 3);
}

/* PATH of RFC 9162, 2.1.3.1. */
static void naive_path(const struct digest *leaves, size_t n, size_t m, struct merkle_path *ret)
{
    size_t k = 1;

    if (n == 1) {
        ret->n = 0;
        return;
    }
    while (k * 2 < n) {
        k *= 2;
    }
    if (m < k) {
        naive_path(leaves, k, m, ret);
        ret->nodes[ret->n++] = naive_root(leaves + k, n - k);
    } else {
        naive_path(leaves + k, n - k, m - k, ret);
        ret->nodes[ret->n++] = naive_root(leaves, k);
    }
}

static void make_leaves(struct digest *leaves, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char record[32];

        (void)snprintf(record, sizeof(record), "record %zu", i);
        leaves[i] = leaf_of(slice_from_cstr(record));
    }
}

/* The eight inputs, and the roots over the first n, that Certificate Transparency's tests use. */
static void roots_are_those_of_certificate_transparency(void **state)
{
    (void)state;
    static const struct slice inputs[] = {
        { "", 0 },
        { "\x00", 1 },
        { "\x10", 1 },
        { "\x20\x21", 2 },
        { "\x30\x31", 2 },
        { "\x40\x41\x42\x43", 4 },
        { "\x50\x51\x52\x53\x54\x55\x56\x57", 8 },
        { "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16 },
    };
    static const char *const roots[] = {
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    };
    struct merkle m;

    merkle_init(&m);
    for (size_t i = 0; i < COUNT_OF(roots); i++) {
        struct digest root = merkle_root(&m);
        char hex[DIGEST_HEX_SIZE];

        digest_hex(&root, hex);
        assert_string_equal(hex, roots[i]);
        if (i < COUNT_OF(inputs)) {
            struct digest leaf = leaf_of(inputs[i]);

            merkle_add(&m, &leaf);
        }
    }
}

static void every_root_is_that_of_the_definition(void **state)
{
    (void)state;
    struct digest leaves[LEAVES_MAX];
    struct merkle m;

    make_leaves(leaves, LEAVES_MAX);
    merkle_init(&m);
    for (size_t n = 0; n < LEAVES_MAX; n++) {
        struct digest root = merkle_root(&m);
        struct digest expected = naive_root(leaves, n);

        assert_true(digest_equal(&root, &expected));
        merkle_add(&m, &leaves[n]);
    }
}

static void prove(const struct digest *leaves, size_t n, size_t index, struct merkle_path *ret)
{
    struct merkle_prover p;

    merkle_prover_init(&p, index);
    for (size_t i = 0; i < n; i++) {
        merkle_prover_add(&p, &leaves[i]);
    }
    assert_true(merkle_prover_path(&p, ret));
}

static void every_path_is_that_of_the_definition_and_holds(void **state)
{
    (void)state;
    struct digest leaves[LEAVES_MAX];

    make_leaves(leaves, LEAVES_MAX);
    for (size_t n = 1; n < LEAVES_MAX; n++) {
        struct digest root = naive_root(leaves, n);

        for (size_t i = 0; i < n; i++) {
            struct merkle_path path;
            struct merkle_path expected;

            prove(leaves, n, i, &path);
            naive_path(leaves, n, i, &expected);
            assert_int_equal(path.n, expected.n);
            assert_memory_equal(path.nodes, expected.nodes, path.n * sizeof(path.nodes[0]));
            assert_true(merkle_path_holds(&path, i, n, &leaves[i], &root));
        }
    }
}

/* A path proves one leaf at one index of one size, and nothing else. */
static void a_path_proves_nothing_else(void **state)
{
    (void)state;
    enum { SIZE = 13 };
    struct digest leaves[SIZE];

    make_leaves(leaves, SIZE);

    struct digest root = naive_root(leaves, SIZE);

    for (size_t i = 0; i < SIZE; i++) {
        struct merkle_path path;

        prove(leaves, SIZE, i, &path);
        for (size_t k = 0; k < SIZE + 2; k++) {
            if (k != i) {
                assert_false(merkle_path_holds(&path, k, SIZE, &leaves[i], &root));
            }
        }
        assert_false(merkle_path_holds(&path, i, SIZE, &leaves[(i + 1) % SIZE], &root));
        for (size_t k = 0; k < path.n; k++) {
            struct merkle_path broken = path;

            broken.nodes[k].bytes[5] ^= 1;
            assert_false(merkle_path_holds(&broken, i, SIZE, &leaves[i], &root));
        }

        struct merkle_path shorter = path;
        struct merkle_path longer = path;

        shorter.n--;
        longer.nodes[longer.n++] = root;
        assert_false(merkle_path_holds(&shorter, i, SIZE, &leaves[i], &root));
        assert_false(merkle_path_holds(&longer, i, SIZE, &leaves[i], &root));
    }
}

static void there_is_no_path_to_a_leaf_that_is_not_there(void **state)
{
    (void)state;
    struct digest leaf = leaf_of(SLICE("x"));
    struct digest root = leaf;
    struct merkle_path path = { 0 };
    struct merkle_prover p;

    merkle_prover_init(&p, 1);
    merkle_prover_add(&p, &leaf);
    assert_false(merkle_prover_path(&p, &path));
    assert_true(merkle_path_holds(&path, 0, 1, &leaf, &root));
    assert_false(merkle_path_holds(&path, 1, 1, &leaf, &root));
    assert_false(merkle_path_holds(&path, 0, 0, &leaf, &root));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_are_those_of_certificate_transparency),
        cmocka_unit_test(every_root_is_that_of_the_definition),
        cmocka_unit_test(every_path_is_that_of_the_definition_and_holds),
        cmocka_unit_test(a_path_proves_nothing_else),
        cmocka_unit_test(there_is_no_path_to_a_leaf_that_is_not_there),
    };

    return cmocka_run_group_tests_name("journal/merkle", tests, NULL, NULL);
}

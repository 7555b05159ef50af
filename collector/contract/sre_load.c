/* sre_load: the files of a hooks path become a set of hooks. */
#include "collector/contract/sre.h"

#include "collector/contract/hook_files.h"
#include "collector/contract/sre_document.h"

/* A hook on its way into the set, and where it stands, for the second of one name. */
struct loaded {
    struct hook hook;
    const char *file;
    size_t line;
    struct loaded *next;
};

struct loading {
    const struct hook_source *src;
    struct hookset *set;
    struct faults *faults;
    struct loaded *first;
    struct loaded **tail;
    size_t n;
};

static bool same_agent(const struct hook *a, const struct hook *b)
{
    const struct sre_hook *x = a->own;
    const struct sre_hook *y = b->own;

    return slice_equal(x->agent, y->agent);
}

static void check_duplicate(struct loading *l, const struct hook *hook, const struct document *doc)
{
    for (const struct loaded *other = l->first; other; other = other->next) {
        if (other->hook.tier == hook->tier && slice_equal(other->hook.name, hook->name) &&
            same_agent(&other->hook, hook)) {
            faults_add(l->faults, FAULT_ERROR, yaml_file(doc->yaml), doc->line, "metadata.name",
                       "'%" SLICE_FMT "' is taken by the hook at %s:%zu, of tier %s too",
                       SLICE_ARG(hook->name), other->file, other->line, tier_name(hook->tier));
            return;
        }
    }
}

static bool add_hook(struct loading *l, const struct document *doc, const char *file,
                     const struct hook *hook)
{
    struct loaded *item = ARENA_NEW(&l->set->arena, struct loaded);

    if (!item) {
        return false;
    }
    check_duplicate(l, hook, doc);
    *item = (struct loaded){ .hook = *hook, .file = file, .line = doc->line };
    *l->tail = item;
    l->tail = &item->next;
    l->n++;
    return true;
}

static void load_document(struct loading *l, const struct yaml *yaml, size_t i, const char *file)
{
    json_t *root = yaml_root(yaml, i);
    struct document doc = {
        .yaml = yaml,
        .line = yaml_root_line(yaml, i),
        .faults = l->faults,
    };
    struct hook hook = { 0 };

    /* "---" at the end of a file makes a document of nothing. */
    if (json_is_null(root) || !sre_document_load(&doc, root, l->src->script_dir, l->set, &hook)) {
        return;
    }
    if (!add_hook(l, &doc, file, &hook)) {
        sre_document_unload(&hook);
        faults_add(l->faults, FAULT_ERROR, file, doc.line, NULL, SRE_SET_TOO_LARGE);
    }
}

static void load_file(struct loading *l, const char *path)
{
    struct yaml *yaml = yaml_load(path, l->faults);

    if (!yaml) {
        return;
    }
    for (size_t i = 0; i < yaml_count(yaml); i++) {
        load_document(l, yaml, i, path);
    }
    yaml_close(yaml);
}

static void free_own(struct hookset *set)
{
    for (size_t i = 0; i < set->n_hooks; i++) {
        sre_document_unload(&set->hooks[i]);
    }
}

static void fill_set(struct loading *l)
{
    struct hookset *set = l->set;

    set->free_own = free_own;
    set->hooks = arena_alloc(&set->arena, l->n + 1, sizeof(*set->hooks));
    if (!set->hooks) {
        faults_add(l->faults, FAULT_ERROR, l->src->path, 0, NULL, SRE_SET_TOO_LARGE);
        for (const struct loaded *item = l->first; item; item = item->next) {
            sre_document_unload(&item->hook);
        }
        return;
    }
    for (const struct loaded *item = l->first; item; item = item->next) {
        set->hooks[set->n_hooks++] = item->hook;
    }
}

void sre_load(const struct hook_source *src, struct hookset *set, struct faults *faults)
{
    struct loading l = { .src = src, .set = set, .faults = faults };
    const char *const *files = NULL;
    size_t n_files = 0;
    struct err err = { 0 };

    l.tail = &l.first;
    if (!hook_files_list(src->path, &set->arena, &files, &n_files, &err)) {
        faults_add(faults, FAULT_ERROR, src->path, 0, NULL, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < n_files; i++) {
        load_file(&l, files[i]);
    }
    fill_set(&l);
}

#include "collector/base/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/mem.h"

enum {
    LIST_BYTES = 1024 * 1024, /* some thousand faults; more help nobody */
    TEXT_BYTES = 512,
};

void faults_init(struct faults *f)
{
    *f = (struct faults){ 0 };
    arena_init(&f->arena, LIST_BYTES);
}

void faults_done(struct faults *f)
{
    arena_clear(&f->arena);
    faults_init(f);
}

/* A copy in the list's arena; NULL for NULL and when the list is full. */
static const char *keep(struct faults *f, const char *text)
{
    struct slice copy;

    return text && arena_dup(&f->arena, slice_from_cstr(text), &copy) ? copy.ptr : NULL;
}

static bool same_file(const struct fault *a, const struct fault *b)
{
    return a->file && b->file ? strcmp(a->file, b->file) == 0 : a->file == b->file;
}

/* Behind what stands before it in its file; a file of which there is none goes last. */
static void insert(struct faults *f, struct fault *one)
{
    struct fault **at = &f->first;

    while (*at && !same_file(*at, one)) {
        at = &(*at)->next;
    }
    while (*at && same_file(*at, one) && (*at)->line <= one->line) {
        at = &(*at)->next;
    }
    one->next = *at;
    *at = one;
}

void faults_add(struct faults *f, enum fault_level level, const char *file, size_t line,
                const char *key, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    size_t prefix = file ? strlen(file) : 0;
    bool repeats = prefix > 0 && strncmp(text, file, prefix) == 0 && text[prefix] == ':' &&
                   text[prefix + 1] == ' ';

    f->errors += level == FAULT_ERROR;
    f->warnings += level == FAULT_WARNING;

    struct fault *one = ARENA_NEW(&f->arena, struct fault);

    if (!one) {
        return; /* still counted */
    }
    one->level = level;
    one->file = keep(f, file);
    one->line = line;
    one->key = keep(f, key);
    one->text = keep(f, repeats ? text + prefix + 2 : text);
    insert(f, one);
}

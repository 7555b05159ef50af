#include "collector/base/fault.h"

#include <stdarg.h>

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

void faults_add(struct faults *f, enum fault_level level, const char *file, size_t line,
                const char *key, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
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
    one->text = keep(f, text);
    if (f->last) {
        f->last->next = one;
    } else {
        f->first = one;
    }
    f->last = one;
}

void faults_print(const struct faults *f, FILE *out)
{
    for (const struct fault *one = f->first; one; one = one->next) {
        (void)fprintf(out, "%s:", one->file ? one->file : "");
        if (one->line > 0) {
            (void)fprintf(out, "%zu:", one->line);
        }
        (void)fprintf(out, " %s: ", one->level == FAULT_ERROR ? "error" : "warning");
        if (one->key) {
            (void)fprintf(out, "%s: ", one->key);
        }
        (void)fprintf(out, "%s\n", one->text ? one->text : "");
    }
}

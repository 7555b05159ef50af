#include "tests/bench/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "collector/base/mem.h"
#include "collector/journal/reader.h"

enum { FIRST_CAP = 1024 };

struct reading {
    struct events *events;
    size_t cap;
    struct err err;
};

void die(const struct err *err)
{
    (void)fprintf(stderr, "%s\n", err->text);
    exit(3);
}

static void keep(struct reading *r, const struct journal_frame *frame)
{
    struct events *e = r->events;
    char *bytes = xcalloc(frame->bytes.len + 1, 1);

    if (e->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : FIRST_CAP;
        e->list = xrealloc(e->list, r->cap * sizeof(*e->list));
    }
    memcpy(bytes, frame->bytes.ptr, frame->bytes.len);
    e->list[e->n++] = (struct sink_record){
        .seq = frame->seq,
        .type = frame->type,
        .leaf = frame->leaf,
        .json = { .ptr = bytes, .len = frame->bytes.len },
    };
}

static bool read_journal(void *ctx, const struct journal_info *info)
{
    struct reading *r = ctx;
    struct journal_reader *reader;
    struct journal_frame frame;
    char *id = xcalloc(ID_TEXT_SIZE, 1);

    memcpy(id, info->id.text, ID_TEXT_SIZE);
    r->events->journal = slice_from_cstr(id);
    if (!journal_reader_open(info->dir, 1, &reader, &r->err)) {
        die(&r->err);
    }
    while (journal_reader_next(reader, &frame, &r->err) == JOURNAL_READ_FRAME) {
        keep(r, &frame);
    }
    journal_reader_close(reader);
    return false;
}

struct events *events_read(const char *state_dir)
{
    struct reading r = { .events = xcalloc(1, sizeof(*r.events)) };

    if (!journal_list(state_dir, read_journal, &r, &r.err)) {
        die(&r.err);
    }
    if (r.events->n == 0) {
        (void)err_set(&r.err, ERR_NOT_FOUND, "%s: no journal with records", state_dir);
        die(&r.err);
    }
    return r.events;
}

static void free_text(struct slice text)
{
    union {
        const char *in;
        void *out;
    } pointer = { .in = text.ptr };

    free(pointer.out);
}

void events_free(struct events *e)
{
    if (e) {
        for (size_t i = 0; i < e->n; i++) {
            free_text(e->list[i].json);
        }
        free_text(e->journal);
        free(e->list);
        free(e);
    }
}

void events_freep(struct events **e)
{
    events_free(*e);
    *e = NULL;
}

int64_t cpu_us(void)
{
    struct rusage r;

    (void)getrusage(RUSAGE_SELF, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * INT64_C(1000000) + r.ru_utime.tv_usec +
           r.ru_stime.tv_usec;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

double median(double *list, size_t n)
{
    qsort(list, n, sizeof(*list), by_size);
    return list[n / 2];
}

#include "sinks/feed.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "collector/journal/reader.h"
#include "collector/record/record.h"
#include "sinks/rejoin.h"

enum {
    LIST_EVERY_MS = 1000,   /* a journal that appears is seen within this */
    WAIT_MAX_MS = 100,      /* one journal can be waited on; the others are looked at so often */
    REOPEN_EVERY_MS = 5000, /* a journal that cannot be read */
};

/* One journal, and how far this sink is with it. */
struct seat {
    struct journal_info info;
    bool placed;                   /* `given` is known */
    bool joined;                   /* since it was placed: it is the journal that the sink knows */
    bool ended;                    /* nothing more will come, and all was given */
    bool listed;                   /* it was there when the folder was last read */
    bool pending;                  /* `frame` was read, and is the next to be given */
    struct sink_position at;       /* where the sink stood when it was placed */
    uint64_t given;                /* the next span begins there */
    uint64_t read;                 /* frames up to read - 1 were given, or told as lost */
    uint64_t damaged_from;         /* 0: no damage stands before the next frame */
    uint64_t told;                 /* losses up to here were told */
    int64_t retry_ms;              /* monotonic: do not open it before */
    struct journal_reader *reader; /* owned; NULL while closed */
    struct journal_frame frame;
    struct err trouble; /* why it cannot be read, and that was logged; ERR_NONE: it can */
};

/* What a span points at: it outlives its seat, whose journal may be removed meanwhile. */
struct batch {
    struct id journal;
    struct sink_record *records; /* owned */
    size_t n_records;
    char *bytes; /* owned */
    size_t used_bytes;
};

struct feed {
    struct source base;
    struct feed_options o;
    struct seat **seats; /* owned, n of them, oldest journal first */
    size_t n;
    size_t cap;
    size_t turn; /* whose turn it is */
    size_t last; /* who gave the last span: the one to wait on */
    int64_t listed_ms;
    struct batch batches[2]; /* the second only where it reads ahead */
    size_t filling;          /* index of the one that the next span gets */
};

static const struct source_ops feed_ops;

static struct feed *from_source(struct source *s)
{
    assert(s->ops == &feed_ops);
    return CONTAINER_OF(s, struct feed, base);
}

static void close_seat(struct seat *seat)
{
    journal_reader_close(seat->reader);
    seat->reader = NULL;
    seat->pending = false;
    seat->damaged_from = 0;
}

static bool on_journal(void *ctx, const struct journal_info *info)
{
    struct feed *f = ctx;

    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->seats[i]->info.id.text, info->id.text) == 0) {
            f->seats[i]->listed = true;
            return true;
        }
    }
    if (f->n == f->cap) {
        f->cap = f->cap ? f->cap * 2 : 8;
        f->seats = xrealloc(f->seats, f->cap * sizeof(struct seat *));
    }
    f->seats[f->n] = xcalloc(1, sizeof(struct seat));
    f->seats[f->n]->info = *info;
    f->seats[f->n]->listed = true;
    f->n++;
    return true;
}

/* A journal whose folder is gone has nothing to give any more. */
static void drop_unlisted(struct feed *f)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->n; i++) {
        if (f->seats[i]->listed) {
            f->seats[kept++] = f->seats[i];
        } else {
            close_seat(f->seats[i]);
            free(f->seats[i]);
        }
    }
    f->n = kept;
}

static bool list_journals(struct feed *f, struct err *err)
{
    int64_t now_ms = clock_mono_ms();

    if (f->listed_ms != 0 && now_ms - f->listed_ms < LIST_EVERY_MS) {
        return true;
    }
    for (size_t i = 0; i < f->n; i++) {
        f->seats[i]->listed = false;
    }
    if (!journal_list(f->o.state_dir, on_journal, f, err)) {
        return false;
    }
    drop_unlisted(f);
    f->listed_ms = now_ms;
    return true;
}

/* What was not told yet of from..to (0: how far is not known). False: nothing. */
static bool untold(const struct seat *seat, uint64_t *from, uint64_t to)
{
    if (to > seat->told && *from <= seat->told) {
        *from = seat->told + 1;
    }
    return *from > seat->told;
}

static void tell_loss(struct feed *f, struct seat *seat, uint64_t from, uint64_t to,
                      const char *cause)
{
    if (!untold(seat, &from, to)) {
        return;
    }

    const struct feed_loss loss = {
        .journal = seat->info.id.text,
        .role = seat->info.role,
        .from = from,
        .to = to,
        .cause = cause,
    };

    seat->told = to > from ? to : from;
    log_error("records cannot be delivered, going on behind them", log_str("sink", f->o.sink),
              log_str("journal", loss.journal), log_i64("from", (int64_t)from),
              log_i64("to", (int64_t)to), log_str("cause", cause));
    if (f->o.on_loss) {
        f->o.on_loss(f->o.ctx, &loss);
    }
    if (f->base.tell) {
        f->base.tell(f->base.position_ctx, id_slice(&seat->info.id), from, seat->told);
    }
}

/* What is older than what is kept. A sink that is new to a journal has lost nothing. */
static void skip_retired(struct feed *f, struct seat *seat, uint64_t first)
{
    if (seat->given == 1 && seat->read == 1) {
        log_info("journal begins later for this sink, what came before is retired",
                 log_str("sink", f->o.sink), log_str("journal", seat->info.id.text),
                 log_i64("first", (int64_t)first));
    } else if (first > seat->read) {
        tell_loss(f, seat, seat->read, first - 1, "retired");
    }
    close_seat(seat);
    seat->read = first;
}

static void trouble(struct feed *f, struct seat *seat, const struct err *err)
{
    if (seat->trouble.code == ERR_NONE) {
        log_error("journal cannot be read, will retry", log_str("sink", f->o.sink),
                  log_str("journal", seat->info.id.text), log_str("err", err->text));
    }
    seat->trouble = *err;
    seat->retry_ms = clock_mono_ms() + REOPEN_EVERY_MS;
    close_seat(seat);
}

static bool open_seat(struct feed *f, struct seat *seat)
{
    struct err err;

    if (seat->reader) {
        return true;
    }
    if (seat->ended || clock_mono_ms() < seat->retry_ms) {
        return false;
    }
    if (!rejoin_open(&seat->info, &seat->at, seat->read, &seat->reader, &err)) {
        seat->reader = NULL;
        trouble(f, seat, &err);
        return false;
    }
    if (!seat->joined && f->base.joined) {
        f->base.joined(f->base.position_ctx, id_slice(&seat->info.id), seat->at.next);
    }
    seat->joined = true;
    return true;
}

/* Read one more frame into seat->frame. False: there is none now. */
static bool read_frame(struct feed *f, struct seat *seat)
{
    struct err err;

    while (!seat->pending && open_seat(f, seat)) {
        enum journal_read got = journal_reader_next(seat->reader, &seat->frame, &err);

        if (got != JOURNAL_READ_ERROR) {
            seat->trouble.code = ERR_NONE;
        }
        switch (got) {
        case JOURNAL_READ_FRAME:
            seat->pending = true;
            break;
        case JOURNAL_READ_WAIT:
            return false;
        case JOURNAL_READ_ENDED:
            if (seat->damaged_from != 0) {
                tell_loss(f, seat, seat->damaged_from, 0, "damage");
            }
            close_seat(seat);
            seat->ended = true;
            return false;
        case JOURNAL_READ_RETIRED:
            skip_retired(f, seat, seat->frame.seq);
            break;
        case JOURNAL_READ_DAMAGED:
            seat->damaged_from = seat->damaged_from ? seat->damaged_from : seat->frame.seq;
            break;
        case JOURNAL_READ_ERROR:
            trouble(f, seat, &err);
            return false;
        }
    }
    return seat->pending;
}

/* Copy the frame into the batch. False: it is full, the frame waits for the next one. */
static bool take_frame(struct feed *f, struct seat *seat, struct batch *b)
{
    char *bytes = b->bytes + b->used_bytes;
    size_t len = seat->frame.bytes.len;

    if (b->n_records == f->o.batch_records || b->used_bytes + len > f->o.batch_bytes) {
        return false;
    }
    if (seat->damaged_from != 0 && seat->frame.seq > seat->damaged_from) {
        tell_loss(f, seat, seat->damaged_from, seat->frame.seq - 1, "damage");
    }
    seat->damaged_from = 0;
    if (len > 0) { /* an empty frame has no bytes to point at */
        memcpy(bytes, seat->frame.bytes.ptr, len);
    }
    b->records[b->n_records++] = (struct sink_record){
        .seq = seat->frame.seq,
        .type = seat->frame.type,
        .leaf = seat->frame.leaf,
        .json = { .ptr = bytes, .len = len },
    };
    b->used_bytes += len;
    seat->read = seat->frame.seq + 1;
    seat->pending = false;
    return true;
}

/* Whether the sink's position is known; false with err when it cannot tell now. */
static bool place(struct feed *f, struct seat *seat, struct err *err)
{
    if (seat->placed) {
        return true;
    }
    if (!f->base.position(f->base.position_ctx, id_slice(&seat->info.id), &seat->at, err)) {
        return false;
    }
    if (f->base.told && seat->told == 0) {
        seat->told = f->base.told(f->base.position_ctx, id_slice(&seat->info.id));
    }
    seat->joined = false;
    seat->given = seat->at.next;
    seat->read = seat->given;
    seat->placed = true;
    return true;
}

static bool gather(struct feed *f, struct seat *seat, struct span *ret)
{
    struct batch *b = &f->batches[f->filling];
    bool more = true;

    b->n_records = 0;
    b->used_bytes = 0;
    while (more) {
        more = read_frame(f, seat) && take_frame(f, seat, b);
    }
    if (b->n_records == 0) {
        return false;
    }
    b->journal = seat->info.id;
    *ret = (struct span){
        .journal = id_slice(&b->journal),
        .from = seat->given,
        .to = seat->read - 1,
        .records = b->records,
        .n = b->n_records,
    };
    seat->given = seat->read;
    f->filling = f->o.ahead ? 1 - f->filling : 0;
    return true;
}

/* The journal `at` has given all it had: has every one, since it was its turn before? */
static bool is_lull(const struct feed *f, size_t at)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->seats[i]->pending) {
            return false;
        }
    }
    return at <= f->last;
}

/* Of several journals that cannot be read, the oldest speaks. */
static void note_unread(struct feed *f)
{
    f->base.unread.code = ERR_NONE;
    for (size_t i = f->n; i > 0; i--) {
        if (f->seats[i - 1]->trouble.code != ERR_NONE) {
            f->base.unread = f->seats[i - 1]->trouble;
        }
    }
}

static enum source_read feed_next(struct source *s, struct span *ret, struct err *err)
{
    struct feed *f = from_source(s);

    if (!list_journals(f, err)) {
        return SOURCE_ERROR;
    }
    for (size_t i = 0; i < f->n; i++) {
        size_t at = (f->turn + i) % f->n;

        if (!place(f, f->seats[at], err)) {
            return SOURCE_ERROR;
        }
        if (gather(f, f->seats[at], ret)) {
            f->base.lull = is_lull(f, at);
            f->last = at;
            f->turn = at + 1;
            note_unread(f);
            return SOURCE_SPAN;
        }
    }
    note_unread(f);
    return SOURCE_WAIT;
}

static void feed_rewind(struct source *s)
{
    struct feed *f = from_source(s);

    f->listed_ms = 0; /* what has come meanwhile is seen at once */
    for (size_t i = 0; i < f->n; i++) {
        close_seat(f->seats[i]);
        f->seats[i]->placed = false;
        f->seats[i]->ended = false;
    }
}

/* The busiest journal can be waited on; the others are looked at soon enough. */
static void feed_wait(struct source *s, int64_t timeout_ms)
{
    struct feed *f = from_source(s);
    struct seat *seat = f->last < f->n ? f->seats[f->last] : NULL;
    int64_t wait_ms = timeout_ms < WAIT_MAX_MS ? timeout_ms : WAIT_MAX_MS;

    if (seat && seat->reader) {
        (void)journal_reader_wait(seat->reader, wait_ms);
    } else {
        (void)poll(NULL, 0, (int)wait_ms);
    }
}

static void feed_close(struct source *s)
{
    if (!s) {
        return;
    }

    struct feed *f = from_source(s);

    for (size_t i = 0; i < f->n; i++) {
        close_seat(f->seats[i]);
        free(f->seats[i]);
    }
    free(f->seats);
    for (size_t i = 0; i < 2; i++) {
        free(f->batches[i].records);
        free(f->batches[i].bytes);
    }
    free(f);
}

static const struct source_ops feed_ops = {
    .next = feed_next,
    .rewind = feed_rewind,
    .wait = feed_wait,
    .close = feed_close,
};

struct source *feed_open(const struct feed_options *o)
{
    struct feed *f = xcalloc(1, sizeof(*f));

    f->base.ops = &feed_ops;
    f->o = *o;
    if (f->o.batch_bytes < RECORD_MAX_BYTES) {
        f->o.batch_bytes = RECORD_MAX_BYTES;
    }
    for (size_t i = 0; i < (o->ahead ? 2 : 1); i++) {
        f->batches[i].records = xcalloc(o->batch_records, sizeof(struct sink_record));
        f->batches[i].bytes = xcalloc(f->o.batch_bytes, 1);
    }
    return &f->base;
}

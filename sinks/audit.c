#include "sinks/audit.h"

#include <stdio.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/record/encode.h"

enum { APPEND_TIMEOUT_MS = 5000, SMALL_TEXT = 256 };

void audit_init(struct audit *a, const struct journal_options *o)
{
    *a = (struct audit){ .options = *o };
    (void)pthread_mutex_init(&a->lock, NULL);
}

void audit_done(struct audit *a)
{
    journal_close(a->journal);
    a->journal = NULL;
    (void)pthread_mutex_destroy(&a->lock);
}

static bool opened(struct audit *a, struct err *err)
{
    struct journal_recovery recovery;
    bool is_open;

    (void)pthread_mutex_lock(&a->lock);
    is_open = a->journal || journal_open(&a->options, &a->journal, &recovery, err);
    (void)pthread_mutex_unlock(&a->lock);
    return is_open;
}

struct journal *audit_journal(struct audit *a)
{
    struct journal *j;

    (void)pthread_mutex_lock(&a->lock);
    j = a->journal;
    (void)pthread_mutex_unlock(&a->lock);
    return j;
}

static bool append(struct audit *a, enum record_type type, const struct buf *b, struct err *err)
{
    uint64_t seq;

    if (!buf_ok(b)) {
        return err_set(err, ERR_TOO_BIG, "audit record");
    }
    return opened(a, err) &&
           journal_append(a->journal, type, buf_slice(b), APPEND_TIMEOUT_MS, &seq, err);
}

static struct record_head new_head(const struct audit *a, const struct id *id)
{
    return (struct record_head){
        .id = id_slice(id),
        .collector = slice_from_cstr(a->options.collector),
        .time_us = clock_now_us(),
    };
}

bool audit_loss(struct audit *a, const struct feed_loss *loss, struct err *err)
{
    CLEANUP(buf_done) struct buf b;
    struct id id = id_new();
    struct gap gap = {
        .head = new_head(a, &id),
        .known = loss->to >= loss->from,
        .lost = loss->to >= loss->from ? loss->to - loss->from + 1 : 0,
        .cause = slice_from_cstr(loss->cause),
    };

    gap.first_us = gap.head.time_us;
    gap.last_us = gap.head.time_us;
    buf_init(&b, RECORD_MAX_BYTES);
    encode_gap(&gap, &b);
    return append(a, RECORD_GAP, &b, err);
}

bool audit_cut(struct audit *a, const char *sink, const struct sink_cut *cut, struct err *err)
{
    CLEANUP(buf_done) struct buf b;
    struct id id = id_new();
    char before[CLOCK_TEXT_SIZE];
    char actor[SMALL_TEXT];
    char details[SMALL_TEXT];
    struct admin admin = { .head = new_head(a, &id), .action = SLICE("retention") };

    clock_format(cut->before_us, before);
    (void)snprintf(actor, sizeof(actor), "uid %u", (unsigned)getuid());
    (void)snprintf(details, sizeof(details),
                   "{\"sink\":\"%.64s\",\"before\":\"%s\",\"records\":%llu}", sink, before,
                   (unsigned long long)cut->rows);
    admin.actor = slice_from_cstr(actor);
    admin.details = slice_from_cstr(details);
    buf_init(&b, RECORD_MAX_BYTES);
    encode_admin(&admin, &b);
    return append(a, RECORD_ADMIN, &b, err);
}

bool audit_on_cut(void *audit, const char *sink, const struct sink_cut *cut, struct err *err)
{
    if (!audit_cut(audit, sink, cut, err)) {
        return err_wrap(err, "not recorded, nothing is deleted");
    }
    log_info("retention begins", log_str("sink", sink), log_i64("records", (int64_t)cut->rows));
    return true;
}

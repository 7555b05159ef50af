/*
 * A slot that a predecessor left says that a hook was running, or that its
 * record was on its way. The hook is ended; the record is written as
 * `interrupted`, unless the journal holds that evaluation already.
 */
#include <stdlib.h>
#include <string.h>

#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "collector/journal/reader.h"
#include "collector/record/encode.h"
#include "collector/recorder/recorder_part.h"

/* What is looked for, in every journal of ours. */
struct search {
    struct slice evaluation_id;
    uint64_t behind_seq;
    bool found;
};

/* The id stands near the start of a record, behind type and schema. */
static bool is_evaluation(const struct journal_frame *frame, struct slice id)
{
    enum { HEAD_BYTES = 128 };
    size_t len = frame->bytes.len < HEAD_BYTES ? frame->bytes.len : HEAD_BYTES;

    return frame->type == RECORD_HOOK_EVALUATION &&
           memmem(frame->bytes.ptr, len, id.ptr, id.len) != NULL;
}

static void search_reader(struct journal_reader *reader, struct search *s)
{
    for (;;) {
        struct journal_frame frame;
        struct err err;

        switch (journal_reader_next(reader, &frame, &err)) {
        case JOURNAL_READ_FRAME:
            if (is_evaluation(&frame, s->evaluation_id)) {
                s->found = true;
                return;
            }
            break;
        case JOURNAL_READ_RETIRED: /* reading goes on with the first there is */
        case JOURNAL_READ_DAMAGED: /* … and behind the damage */
            break;
        case JOURNAL_READ_WAIT:
        case JOURNAL_READ_ENDED:
            return;
        case JOURNAL_READ_ERROR:
            log_warn("journal cannot be searched for an evaluation, recording it as interrupted",
                     log_slice("evaluation", s->evaluation_id), log_str("err", err.text));
            return;
        }
    }
}

static bool search_journal(void *ctx, const struct journal_info *info)
{
    struct search *s = ctx;
    struct journal_reader *reader;
    struct err err;

    if (strcmp(info->role, "collect") != 0 || info->durable_seq <= s->behind_seq) {
        return true;
    }
    if (!journal_reader_open(info->dir, s->behind_seq + 1, &reader, &err)) {
        log_warn("journal cannot be searched for an evaluation, recording it as interrupted",
                 log_slice("evaluation", s->evaluation_id), log_str("err", err.text));
        return true;
    }
    search_reader(reader, s);
    journal_reader_close(reader);
    return !s->found;
}

static bool is_recorded(struct recorder *r, const struct inflight_entry *left)
{
    struct search s = { .evaluation_id = id_slice(&left->evaluation_id),
                        .behind_seq = left->journal_seq };
    struct err err;

    if (!r->options.state_dir) {
        return false;
    }
    if (!journal_list(r->options.state_dir, search_journal, &s, &err)) {
        log_warn("journals cannot be listed, recording an evaluation as interrupted",
                 log_str("err", err.text));
    }
    return s.found;
}

static void encode_interrupted(struct recorder *r, const struct inflight_entry *left,
                               struct buf *out)
{
    uint32_t known = left->hook_name[0] != '\0' ? 1 : 0; /* 0: a torn slot */
    struct execution hook = { .ordinal = left->ordinal,
                              .hook_name = slice_from_cstr(left->hook_name),
                              .decision = DECISION_INTERRUPTED };
    struct evaluation e = {
        .head = { .id = id_slice(&left->evaluation_id),
                  .collector = r->collector,
                  .time_us = left->started_us },
        .dispatch_id = id_slice(&left->dispatch_id),
        .source = SOURCE_DISPATCHER,
        .contract = slice_from_cstr(left->contract),
        .chain = chain_kind_from(slice_from_cstr(left->chain)),
        .thread_id = slice_from_cstr(left->thread_id),
        .call_id = slice_from_cstr(left->call_id),
        .agent_name = slice_from_cstr(left->agent_name),
        .hook_event_type = slice_from_cstr(left->event),
        .tool_name = slice_from_cstr(left->tool_name),
        .final_decision = DECISION_INTERRUPTED,
        .reason = { .text = SLICE("The collector ended while this hook was running.") },
        .hooks_configured = known,
        .hooks_run = known,
        .hooks = &hook,
        .n_hooks = known,
    };

    encode_evaluation(&e, out);
}

/* A record that nobody waits for. */
struct told {
    struct journal_batch batch;
    struct buf json;
};

static void told_done(struct told *t)
{
    buf_done(&t->json);
    free(t);
}

static void on_settled(struct journal_batch *b, enum journal_outcome outcome, uint64_t first_seq)
{
    (void)outcome; /* the journal has counted it */
    (void)first_seq;
    told_done(CONTAINER_OF(b, struct told, batch));
}

/* The slot is free behind it, so that from now on the journal answers for the record. */
static void submit(struct recorder *r, const struct inflight_entry *left)
{
    struct told *t = xcalloc(1, sizeof(*t));
    struct err err;

    buf_init(&t->json, RECORD_MAX_BYTES);
    encode_interrupted(r, left, &t->json);
    t->batch.records[0].type = RECORD_HOOK_EVALUATION;
    t->batch.records[0].bytes = buf_slice(&t->json);
    t->batch.n = 1;
    t->batch.on_settled = on_settled;
    journal_owe(r->options.journal, &t->batch);
    if (!journal_submit(r->options.journal, &t->batch, &err)) {
        log_error("interrupted evaluation not recorded, counted as lost",
                  log_str("evaluation", left->evaluation_id.text), log_str("err", err.text));
        journal_count_lost(r->options.journal, 1, "interrupted");
        atomic_fetch_add(&r->lost, 1);
        told_done(t);
    }
}

void recorder_interrupted(void *recorder, const struct inflight_entry *left)
{
    struct recorder *r = recorder;
    uint32_t ended = process_end_orphans(left->pid, left->start_ticks, left->tag);

    if (ended > 0) {
        log_warn("hook of a dead collector was still running, ended",
                 log_str("hook", left->hook_name), log_i64("processes", ended));
    }
    if (r->options.journal && !is_recorded(r, left)) {
        submit(r, left);
    }
}

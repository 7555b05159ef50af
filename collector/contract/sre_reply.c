/* sre_reply: the result for the host. */
#include "collector/contract/sre.h"

#define UNRECORDED "The hook decision could not be recorded in time."
#define WITHHELD                                                             \
    "Tool executed, but its output was withheld as it needs user approval. " \
    "Try to find an alternative approach."

/* All chains together. */
struct total {
    enum decision decision;
    struct buf reason; /* of all chains that decided so, a line each */
    struct slice question;
    struct slice context;
    struct slice allowing_hook;
    bool blocked;
};

/* Of two chains the graver decision counts. */
static int gravity(enum decision decision)
{
    static const int gravities[DECISION_COUNT] = {
        [DECISION_PASS] = 0,        [DECISION_ALLOW] = 1,     [DECISION_ERROR] = 2,
        [DECISION_REJECT] = 3,      [DECISION_ASK] = 4,       [DECISION_DENY] = 5,
        [DECISION_INTERRUPTED] = 6, [DECISION_CANCELLED] = 7,
    };

    return gravities[decision];
}

static void add_reasons(const struct dispatch *d, struct total *t)
{
    for (size_t i = 0; i < d->n_chains; i++) {
        const struct chain *c = &d->chains[i];

        if (c->decision == t->decision && c->reason.len > 0) {
            if (t->reason.len_bytes > 0) {
                buf_add_char(&t->reason, '\n');
            }
            buf_add(&t->reason, c->reason);
        }
    }
}

static bool delivers_context(enum decision decision)
{
    return decision == DECISION_PASS || decision == DECISION_REJECT || decision == DECISION_ERROR;
}

static bool is_blocked(const struct dispatch *d, enum decision decision)
{
    const struct sre_request *r = d->own;

    if (r->event == SRE_START) {
        return false;
    }
    return decision == DECISION_REJECT || decision == DECISION_DENY ||
           decision == DECISION_CANCELLED || decision == DECISION_INTERRUPTED ||
           (decision == DECISION_ASK && d->facts.child);
}

static void sum(const struct dispatch *d, struct total *t)
{
    t->decision = DECISION_PASS;
    for (size_t i = 0; i < d->n_chains; i++) {
        const struct chain *c = &d->chains[i];
        const struct sre_chain *own = c->own;

        if (gravity(c->decision) > gravity(t->decision)) {
            t->decision = c->decision;
        }
        if (own->context.len > 0 && delivers_context(c->decision)) {
            t->context = own->context;
        }
        if (own->question.len > 0) {
            t->question = own->question;
        }
        t->allowing_hook = c->allowing_hook;
    }
    t->blocked = is_blocked(d, t->decision);
    add_reasons(d, t);
}

/* ---- Writing -------------------------------------------------------------- */

static void add_text(struct buf *out, const char *key, struct slice text)
{
    if (text.len > 0) {
        buf_addf(out, ",\"%s\":", key);
        buf_add_json_string(out, text);
    }
}

static void add_ids(const struct dispatch *d, struct buf *out)
{
    buf_add(out, SLICE("{\"dispatch_id\":"));
    buf_add_json_string(out, id_slice(&d->id));
    buf_add(out, SLICE(",\"evaluation_ids\":["));
    for (size_t i = 0; i < d->n_chains; i++) {
        buf_add(out, i > 0 ? SLICE(",") : SLICE(""));
        buf_add_json_string(out, id_slice(&d->chains[i].id));
    }
    buf_add(out, SLICE("]"));
}

static void add_member(struct buf *out, bool *first, const struct sre_metadata *m,
                       struct slice allowing_hook)
{
    buf_add(out, *first ? SLICE("") : SLICE(","));
    *first = false;
    buf_add(out, m->raw_key);
    buf_add_char(out, ':');
    if (allowing_hook.len > 0 && slice_equal(m->key, SLICE(SRE_AGGREGATION_KEY))) {
        /* The pipeline's own value replaces what a hook gave under this name. */
        buf_add_json_string(out, allowing_hook);
    } else {
        buf_add(out, m->value);
    }
}

/* True when an earlier chain wrote this key: of one name the first value counts. */
static bool is_written(const struct dispatch *d, size_t chain, struct slice key)
{
    for (size_t i = 0; i < chain; i++) {
        if (sre_has_metadata(d->chains[i].own, key)) {
            return true;
        }
    }
    return false;
}

/* An ask pauses the run, and a pause drops what the hooks before it carried. */
static void add_metadata(const struct dispatch *d, const struct total *t, struct buf *out)
{
    bool first = true;

    buf_add(out, SLICE(",\"metadata\":{"));
    for (size_t i = 0; t->decision != DECISION_ASK && i < d->n_chains; i++) {
        const struct sre_chain *own = d->chains[i].own;

        for (const struct sre_metadata *m = own->metadata; m; m = m->next) {
            if (!is_written(d, i, m->key)) {
                add_member(out, &first, m, t->allowing_hook);
            }
        }
    }
    buf_add(out, SLICE("}"));
}

/* The text that the model sees in place of a blocked call or result. */
static void add_tool_message(const struct dispatch *d, const struct total *t, struct slice reason,
                             struct buf *out)
{
    const struct sre_request *r = d->own;
    struct buf text;

    if (!t->blocked || !sre_event_is_tool(r->event)) {
        return;
    }
    if (r->event == SRE_POST_TOOL_USE && t->decision == DECISION_ASK) {
        add_text(out, "tool_message", SLICE(WITHHELD));
        return;
    }
    buf_init(&text, DISPATCH_ARENA_BYTES);
    buf_add(&text, r->event == SRE_PRE_TOOL_USE
                       ? SLICE("[Tool execution blocked] ")
                       : SLICE("[Tool result blocked by hook] [Hook Blocked Tool Result] "));
    buf_add(&text, reason.len > 0 ? reason : SLICE(SRE_DEFAULT_REASON));
    add_text(out, "tool_message", buf_slice(&text));
    buf_done(&text);
}

/* Of a child's question after the tool ran, nothing but the fixed text may come out. */
static bool tells_reason(const struct dispatch *d, const struct total *t)
{
    const struct sre_request *r = d->own;

    if (r->event == SRE_START) {
        return false;
    }
    return t->decision != DECISION_ASK || (t->blocked && r->event == SRE_PRE_TOOL_USE);
}

static void write_total(const struct dispatch *d, const struct total *t, struct buf *out)
{
    const struct sre_request *r = d->own;
    struct slice reason = tells_reason(d, t) ? buf_slice(&t->reason) : SLICE("");

    add_ids(d, out);
    add_text(out, "final_decision", slice_from_cstr(decision_name(t->decision)));
    buf_addf(out, ",\"blocked\":%s", t->blocked ? "true" : "false");
    add_text(out, "reason", reason);
    if (t->decision == DECISION_ASK && !t->blocked && r->event != SRE_START) {
        add_text(out, "question", t->question);
    }
    add_text(out, "additional_context", t->context);
    add_metadata(d, t, out);
    add_text(out, "allowing_hook", t->allowing_hook);
    add_tool_message(d, t, reason, out);
    buf_add(out, SLICE("}"));
}

bool sre_reply(struct dispatch *d, struct buf *out, int *ret_exit_code, struct err *err)
{
    struct total t = { 0 };

    buf_init(&t.reason, DISPATCH_ARENA_BYTES);
    sum(d, &t);
    write_total(d, &t, out);
    buf_done(&t.reason);
    *ret_exit_code = 0;
    return buf_ok(out) || err_set(err, ERR_TOO_BIG, "the result is too long");
}

bool sre_reply_unrecorded(struct dispatch *d, struct buf *out, int *ret_exit_code, struct err *err)
{
    const struct sre_request *r = d->own;
    struct total t = { 0 };

    if (r->event == SRE_START) {
        return sre_reply(d, out, ret_exit_code, err);
    }
    buf_init(&t.reason, sizeof(UNRECORDED));
    buf_add(&t.reason, SLICE(UNRECORDED));
    t.decision = r->event == SRE_STOP ? DECISION_REJECT : DECISION_DENY;
    t.blocked = true;

    struct slice reason = buf_slice(&t.reason);

    add_ids(d, out);
    add_text(out, "final_decision", slice_from_cstr(decision_name(t.decision)));
    buf_add(out, SLICE(",\"blocked\":true"));
    add_text(out, "reason", reason);
    buf_add(out, SLICE(",\"metadata\":{}"));
    add_tool_message(d, &t, reason, out);
    buf_add(out, SLICE("}"));
    buf_done(&t.reason);
    *ret_exit_code = 0;
    return buf_ok(out) || err_set(err, ERR_TOO_BIG, "the result is too long");
}

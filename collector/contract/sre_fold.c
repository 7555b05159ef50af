/*
 * sre_fold: verdicts become a chain's decision.
 *
 * deny and ask end the chain at once, and an ask discards the rejections before
 * it. Plain rejections gather; without one, the first allow stands. A chain with
 * a hook that could not be run at all is an `error` rather than a pass or an
 * allow: a check that never happened must not look like one that agreed.
 */
#include "collector/contract/sre.h"

#include <string.h>

/* Keys of hookSpecificOutput that are no metadata. */
static const char *const meaning_keys[] = {
    "permissionDecision", "permissionDecisionReason", "additionalContext", "hookEventName",
    "updatedInput",
};

enum { FIRST_REASONS_BYTES = 256 };

static bool is_metadata(struct slice raw_key)
{
    for (size_t i = 0; i < sizeof(meaning_keys) / sizeof(meaning_keys[0]); i++) {
        if (payload_string_is(raw_key, slice_from_cstr(meaning_keys[i]))) {
            return false;
        }
    }
    return true;
}

/* FNV-1a. */
static size_t slot_of(struct slice key)
{
    uint64_t hash = 14695981039346656037U;

    for (size_t i = 0; i < key.len; i++) {
        hash = (hash ^ (unsigned char)key.ptr[i]) * 1099511628211U;
    }
    return (size_t)(hash % SRE_METADATA_SLOTS);
}

bool sre_has_metadata(const struct sre_chain *chain, struct slice key)
{
    const struct sre_metadata *m = chain->slots ? chain->slots[slot_of(key)] : NULL;

    while (m && !slice_equal(m->key, key)) {
        m = m->next_in_slot;
    }
    return m != NULL;
}

static void file_metadata(struct sre_chain *own, struct sre_metadata *m)
{
    size_t slot = slot_of(m->key);

    m->next_in_slot = own->slots[slot];
    own->slots[slot] = m;
    if (own->last) {
        own->last->next = m;
    } else {
        own->metadata = m;
    }
    own->last = m;
}

static void add_metadata(struct dispatch *d, struct sre_chain *own, struct slice raw_key,
                         struct json_value value)
{
    struct slice key;
    struct sre_metadata *m;

    if (!own->slots) {
        own->slots = arena_alloc(&d->arena, SRE_METADATA_SLOTS, sizeof(struct sre_metadata *));
    }
    if (!own->slots || !payload_string(raw_key, &d->arena, &key, NULL) ||
        sre_has_metadata(own, key)) {
        return;
    }
    m = ARENA_NEW(&d->arena, struct sre_metadata);
    if (m) {
        *m = (struct sre_metadata){ .key = key, .raw_key = raw_key, .value = value.raw };
        file_metadata(own, m);
    }
}

static void take_metadata(struct dispatch *d, struct sre_chain *own, struct json_value specific)
{
    struct payload_iter it = payload_iter(specific);
    struct slice key;
    struct json_value value;

    if (specific.kind != JSON_KIND_OBJECT) {
        return;
    }
    while (payload_next(&it, &key, &value)) {
        if (is_metadata(key)) {
            add_metadata(d, own, key, value);
        }
    }
}

/* Room for n more bytes of reasons; false at the arena's limit. */
static bool reserve(struct dispatch *d, struct sre_chain *own, size_t n)
{
    size_t cap = own->reasons_cap > 0 ? own->reasons_cap : FIRST_REASONS_BYTES;
    char *grown;

    if (own->reasons_cap - own->reasons_len >= n) {
        return true;
    }
    while (cap - own->reasons_len < n) {
        cap *= 2;
    }
    grown = arena_alloc(&d->arena, cap, 1);
    if (!grown) {
        return false;
    }
    if (own->reasons_len > 0) {
        memcpy(grown, own->reasons, own->reasons_len);
    }
    own->reasons = grown;
    own->reasons_cap = cap;
    return true;
}

static void add_reason(struct dispatch *d, struct sre_chain *own, struct slice reason)
{
    own->rejected = true;
    if (reason.len == 0 || !reserve(d, own, reason.len + 1)) {
        return;
    }
    if (own->reasons_len > 0) {
        own->reasons[own->reasons_len++] = '\n';
    }
    memcpy(own->reasons + own->reasons_len, reason.ptr, reason.len);
    own->reasons_len += reason.len;
}

static void note_failure(struct dispatch *d, struct sre_chain *own, const struct verdict *v)
{
    const struct sre_verdict *said = v->own;

    if (said && said->blocks) {
        add_reason(d, own, v->reason);
    }
    if (said && said->not_run && !own->not_run) {
        own->not_run = true;
        own->excuse = v->reason;
    }
}

static void note_pass(struct dispatch *d, struct sre_chain *own, const struct step *step,
                      const struct verdict *v)
{
    const struct sre_verdict *said = v->own;

    if (said) {
        take_metadata(d, own, said->specific);
    }
    if (v->decision == DECISION_ALLOW && own->allower.len == 0) {
        own->allower = step->hook->name;
    }
}

/* What the chain is, were this the last verdict. */
static void settle(struct chain *chain)
{
    const struct sre_chain *own = chain->own;

    chain->reason = (struct slice){ 0 };
    chain->allowing_hook = (struct slice){ 0 };
    if (own->rejected) {
        chain->decision = DECISION_REJECT;
        chain->reason = (struct slice){ .ptr = own->reasons, .len = own->reasons_len };
    } else if (own->not_run) {
        chain->decision = DECISION_ERROR;
        chain->reason = own->excuse;
    } else if (own->allower.len > 0) {
        chain->decision = DECISION_ALLOW;
        chain->allowing_hook = own->allower;
    } else {
        chain->decision = DECISION_PASS;
    }
}

static enum fold_result end(struct chain *chain, enum decision decision, struct slice reason)
{
    chain->decision = decision;
    chain->reason = reason;
    chain->allowing_hook = (struct slice){ 0 };
    return FOLD_STOP;
}

enum fold_result sre_fold(struct dispatch *d, struct chain *chain, const struct step *step,
                          const struct verdict *verdict)
{
    struct sre_chain *own = chain->own;
    const struct sre_verdict *said = verdict->own;

    if (said && said->context.len > 0) {
        own->context = said->context;
    }
    switch (verdict->decision) {
    case DECISION_DENY:
        return end(chain, DECISION_DENY, verdict->reason);
    case DECISION_ASK:
        own->question = said ? said->question : SLICE("");
        return end(chain, DECISION_ASK, own->question);
    case DECISION_REJECT:
        chain->rejection_count++;
        add_reason(d, own, verdict->reason);
        break;
    case DECISION_ERROR:
        note_failure(d, own, verdict);
        break;
    case DECISION_PASS:
    case DECISION_ALLOW:
        note_pass(d, own, step, verdict);
        break;
    case DECISION_CANCELLED:
    case DECISION_INTERRUPTED:
        return end(chain, verdict->decision, verdict->reason);
    case DECISION_NONE:
    case DECISION_SKIPPED:
    case DECISION_COUNT:
        break;
    }
    settle(chain);
    return FOLD_GO_ON;
}

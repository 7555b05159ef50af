/*
 * Any bytes as a record; the first chooses its type. What is no JSON is refused; what is read
 * is written as a record that is read the same; the rows of its hooks are JSON.
 */
#include <assert.h>
#include <string.h>

#include "collector/record/outline.h"
#include "collector/record/payload.h"
#include "tests/unit/record/any_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 64 * 1024 * 1024, BUF_BYTES = 8 * 1024 * 1024 };

static bool is_json(struct slice text)
{
    struct json_value v;
    struct err err;

    return payload_check(text, &v, &err);
}

/* The outline of an evaluation and its rows. *ret_n is how many those are; false: it has none. */
static bool outlined(struct slice json, enum record_type type, struct arena *a,
                     struct buf *identity, size_t *ret_n)
{
    CLEANUP(buf_done) struct buf row;
    struct outline o;
    struct err err = { 0 };

    buf_init(&row, BUF_BYTES);
    if (!outline_read(json, type, a, identity, &o, &err)) {
        assert(err.code != ERR_NONE);
        return false;
    }
    assert(is_json(json));
    assert(id_valid(o.id));
    for (size_t i = 0; i < o.n_ran; i++) {
        buf_clear(&row);
        encode_execution_row(o.id, o.ran[i].ordinal, buf_slice(identity), o.ran[i].json, &row);
        assert(is_json(buf_slice(&row)));
    }
    *ret_n = o.n_ran;
    return true;
}

/* What we wrote is outlined as what it is. */
static void check_outline(struct slice json, struct arena *a, struct buf *identity)
{
    CLEANUP(buf_done) struct buf expected;
    struct evaluation e;
    struct err err;
    size_t n;
    size_t ran = 0;

    buf_init(&expected, BUF_BYTES);
    assert(decode_evaluation(json, a, &e, &err));
    assert(outlined(json, RECORD_HOOK_EVALUATION, a, identity, &n));
    for (size_t i = 0; i < e.n_hooks; i++) {
        ran += e.hooks[i].decision != DECISION_SKIPPED;
    }
    assert(n == ran);
    encode_identity(&e, &expected);
    assert(slice_equal(buf_slice(identity), buf_slice(&expected)));
}

/* A time of before 1970 is written as 1970, and that is read as none where a time may be left out.
 */
static bool is_clamped(struct slice written)
{
    static const char first_of_all[] = "_time\":\"1970-01-01T00:00:00.000000Z\"";

    return memmem(written.ptr, written.len, first_of_all, sizeof(first_of_all) - 1) != NULL;
}

/* A record that was read: it is written as one that is read the same. */
static void check_record(enum record_type type, struct slice written, struct arena *a,
                         struct buf *identity)
{
    CLEANUP(buf_done) struct buf again;
    struct err err;

    buf_init(&again, BUF_BYTES);
    assert(is_json(written));
    assert(recode(type, written, a, &again, &err));
    assert(slice_equal(buf_slice(&again), written) || is_clamped(written));
    if (type == RECORD_HOOK_EVALUATION) {
        check_outline(written, a, identity);
    }
}

static void check(enum record_type type, struct slice json)
{
    CLEANUP(arena_clear) struct arena a;
    CLEANUP(buf_done) struct buf written;
    CLEANUP(buf_done) struct buf identity;
    struct err err = { 0 };
    size_t n;

    arena_init(&a, ARENA_BYTES);
    buf_init(&written, BUF_BYTES);
    buf_init(&identity, BUF_BYTES);
    if (recode(type, json, &a, &written, &err)) {
        assert(is_json(json));
        if (written.len_bytes > 0) {
            check_record(type, buf_slice(&written), &a, &identity);
        }
    } else {
        assert(err.code != ERR_NONE && err.text[0] != '\0');
    }
    (void)outlined(json, type, &a, &identity, &n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0) {
        check((enum record_type)(data[0] % RECORD_TYPE_COUNT),
              (struct slice){ .ptr = (const char *)data + 1, .len = size - 1 });
    }
    return 0;
}

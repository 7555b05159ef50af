#include "collector/journal/checkpoint.h"

#include <string.h>

#include "collector/base/clock.h"
#include "collector/record/payload.h"

enum {
    SCHEMA = 1,          /* of this record alone: old seals stay readable as they are */
    RECORD_BYTES = 4096, /* a name of 128 characters and a rotation take some 1,200 */
};

/* bytes as lower-case hexadecimal digits in quotes, behind its key. */
static void add_hex(struct buf *out, const char *key, const unsigned char *bytes, size_t n)
{
    buf_addf(out, ",\"%s\":\"", key);
    for (size_t i = 0; i < n; i++) {
        buf_addf(out, "%02x", bytes[i]);
    }
    buf_add_char(out, '"');
}

/* All of the record that is signed: everything before its signatures. */
static void add_signed_part(const struct checkpoint *c, struct buf *out)
{
    char time[CLOCK_TEXT_SIZE];

    clock_format(c->time_us, time);
    buf_addf(out, "{\"type\":\"checkpoint\",\"schema\":%d,\"id\":\"%s\",\"collector\":", SCHEMA,
             c->id.text);
    buf_add_json_string(out, c->collector);
    buf_addf(out, ",\"time\":\"%s\",\"journal\":\"%s\",\"first_seq\":", time, c->journal.text);
    buf_add_u64(out, c->first_seq);
    buf_addf(out, ",\"last_seq\":");
    buf_add_u64(out, c->last_seq);
    add_hex(out, "root", c->root.bytes, DIGEST_BYTES);
    if (c->has_previous) {
        add_hex(out, "previous", c->previous.bytes, DIGEST_BYTES);
    }
    buf_addf(out, ",\"boot_id\":\"%s\",\"key_id\":\"%s\"", c->boot.text, c->key_id);
    if (c->rotates) {
        buf_addf(out, ",\"next_key_id\":\"%s\"", c->next_key_id);
        add_hex(out, "next_key", c->next_key, KEY_PUBLIC_BYTES);
    }
}

static void add_signatures(const struct checkpoint *c, struct buf *out)
{
    add_hex(out, "signature", c->signature.bytes, KEY_SIGNATURE_BYTES);
    if (c->rotates) {
        add_hex(out, "next_signature", c->next_signature.bytes, KEY_SIGNATURE_BYTES);
    }
    buf_add_char(out, '}');
}

static void copy_key_id(char ret[KEY_ID_SIZE], const struct key *k)
{
    memcpy(ret, key_id(k), KEY_ID_SIZE);
}

void checkpoint_write(struct checkpoint *c, struct key *key, struct key *next, struct buf *out)
{
    CLEANUP(buf_done) struct buf text = { .max_bytes = RECORD_BYTES };

    copy_key_id(c->key_id, key);
    c->rotates = next != NULL;
    if (next) {
        copy_key_id(c->next_key_id, next);
        memcpy(c->next_key, key_public(next), KEY_PUBLIC_BYTES);
    }
    add_signed_part(c, &text);
    key_sign(key, buf_slice(&text), &c->signature);
    if (next) {
        key_sign(next, buf_slice(&text), &c->next_signature);
    }
    add_signatures(c, &text);
    buf_add(out, buf_slice(&text));
    out->too_big = out->too_big || !buf_ok(&text);
}

/* A record while it is read; `ok` turns false at the first thing that is not right. */
struct reading {
    struct json_value record;
    struct arena *arena;
    bool ok;
};

static struct slice text_of(struct reading *r, const char *key)
{
    struct json_value v = payload_get(r->record, slice_from_cstr(key));
    struct slice text = { 0 };

    r->ok = r->ok && v.kind == JSON_KIND_STRING && payload_string(v.raw, r->arena, &text, NULL);
    return text;
}

static bool has(const struct reading *r, const char *key)
{
    return payload_get(r->record, slice_from_cstr(key)).kind != JSON_KIND_NONE;
}

static uint64_t number_of(struct reading *r, const char *key)
{
    struct json_value v = payload_get(r->record, slice_from_cstr(key));
    uint64_t n = 0;

    r->ok = r->ok && v.kind == JSON_KIND_NUMBER && slice_to_u64(v.raw, &n);
    return n;
}

static struct id id_of(struct reading *r, const char *key)
{
    struct slice text = text_of(r, key);
    struct id id = { 0 };

    r->ok = r->ok && id_valid(text);
    if (r->ok) {
        memcpy(id.text, text.ptr, ID_TEXT_LEN);
    }
    return id;
}

/* Exactly n bytes in hexadecimal digits. */
static void hex_of(struct reading *r, const char *key, unsigned char *ret, size_t n)
{
    r->ok = hex_read(text_of(r, key), ret, n) && r->ok;
}

static void key_id_of(struct reading *r, const char *key, char ret[KEY_ID_SIZE])
{
    unsigned char bytes[KEY_ID_LEN / 2];
    struct slice text = text_of(r, key);

    r->ok = r->ok && hex_read(text, bytes, sizeof(bytes));
    if (r->ok) {
        memcpy(ret, text.ptr, KEY_ID_LEN);
    }
}

static void read_fields(struct reading *r, struct checkpoint *c)
{
    c->id = id_of(r, "id");
    c->collector = text_of(r, "collector");
    r->ok = clock_parse(text_of(r, "time"), &c->time_us) && r->ok;
    c->journal = id_of(r, "journal");
    c->first_seq = number_of(r, "first_seq");
    c->last_seq = number_of(r, "last_seq");
    hex_of(r, "root", c->root.bytes, DIGEST_BYTES);
    c->has_previous = has(r, "previous");
    if (c->has_previous) {
        hex_of(r, "previous", c->previous.bytes, DIGEST_BYTES);
    }
    c->boot = id_of(r, "boot_id");
    key_id_of(r, "key_id", c->key_id);
    hex_of(r, "signature", c->signature.bytes, KEY_SIGNATURE_BYTES);
    c->rotates = has(r, "next_key");
    if (c->rotates) {
        key_id_of(r, "next_key_id", c->next_key_id);
        hex_of(r, "next_key", c->next_key, KEY_PUBLIC_BYTES);
        hex_of(r, "next_signature", c->next_signature.bytes, KEY_SIGNATURE_BYTES);
    }
}

/* True when writing *c again gives the very same bytes. */
static bool is_as_we_write(struct slice record, const struct checkpoint *c)
{
    CLEANUP(buf_done) struct buf again = { .max_bytes = RECORD_BYTES };

    add_signed_part(c, &again);
    add_signatures(c, &again);
    return buf_ok(&again) && slice_equal(buf_slice(&again), record);
}

bool checkpoint_read(struct slice record, struct arena *a, struct checkpoint *ret, struct err *err)
{
    struct reading r = { .arena = a, .ok = true };
    struct checkpoint c = { 0 };

    if (!payload_check(record, &r.record, err)) {
        err->code = ERR_CORRUPT;
        return err_wrap(err, "checkpoint");
    }
    read_fields(&r, &c);
    if (!r.ok || !is_as_we_write(record, &c)) {
        return err_set(err, ERR_CORRUPT, "this is no checkpoint record as it is written");
    }
    *ret = c;
    return true;
}

/* The next key says itself that it takes over: nobody can hand on to a key that is not theirs. */
static bool next_key_signed(const struct checkpoint *c, struct slice bytes)
{
    struct key *next = NULL;
    struct err err;

    if (!key_from_public(c->next_key, &next, &err)) {
        return false;
    }

    bool ok =
        strcmp(key_id(next), c->next_key_id) == 0 && key_signed(next, bytes, &c->next_signature);

    key_free(next);
    return ok;
}

bool checkpoint_holds(struct slice record, const struct checkpoint *c, struct key *key)
{
    CLEANUP(buf_done) struct buf bytes = { .max_bytes = RECORD_BYTES };

    add_signed_part(c, &bytes);
    if (!slice_starts_with(record, buf_slice(&bytes)) || strcmp(key_id(key), c->key_id) != 0 ||
        !key_signed(key, buf_slice(&bytes), &c->signature)) {
        return false;
    }
    return !c->rotates || next_key_signed(c, buf_slice(&bytes));
}

const char *checkpoint_key_in_force(const struct checkpoint *c)
{
    return c->rotates ? c->next_key_id : c->key_id;
}

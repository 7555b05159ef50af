/*
 * fields: every key of every record, once, for the writer and the reader alike.
 *
 * A record is a row of tables: key, kind, and where the value lies in its
 * struct. `encode` walks the table and writes what is set; `decode` walks the
 * JSON once and fills what the table knows. All is constant.
 */
#pragma once

#include <stddef.h>

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "collector/base/err.h"
#include "collector/record/payload.h"
#include "collector/record/record.h"

enum field_kind {
    FIELD_TEXT,         /* struct slice */
    FIELD_JSON,         /* struct slice: any JSON as text, spliced in */
    FIELD_ARRAY,        /* the same, of this kind */
    FIELD_OBJECT,       /* the same, of this kind */
    FIELD_REASON,       /* struct cut_text: the key, KEY_truncated, KEY_chars */
    FIELD_REASON_CHARS, /* read only: what FIELD_REASON wrote as KEY_chars */
    FIELD_WORD,         /* an enum */
    FIELD_BOOL,
    FIELD_U32,
    FIELD_U64,
    FIELD_I32,
    FIELD_I64,
    FIELD_TIME,    /* int64_t, microseconds; RFC 3339 in JSON */
    FIELD_PAYLOAD, /* read only: struct payload_facts; encode writes it by itself */
    FIELD_HOOKS,   /* read only: the list of struct evaluation */
};

/* One enum's spelling, both ways. */
struct words {
    const char *(*name)(unsigned v);
    unsigned (*from)(struct slice name);
};

struct field {
    struct slice lead; /* the key as it stands in JSON behind another: `,"thread_id":` */
    enum field_kind kind;
    size_t offset; /* of the value in its struct */
    size_t has;    /* of the bool that says whether there is one; 0: no such bool */
    bool always;   /* written when zero, too */
    bool identity; /* of an evaluation: also in the rows derived from it */
    bool outline;  /* it takes this to pass the record's bytes on */
    const struct words *words;
};

struct fields {
    const struct field *rows;
    size_t n;
    bool outline; /* to be read: only the rows that are an outline's */
};

/* Each begins with the keys of struct record_head, which every record begins with. */
extern const struct fields evaluation_fields;
extern const struct fields tool_execution_fields;
extern const struct fields hook_registry_fields;
extern const struct fields gap_fields;
extern const struct fields admin_fields;

/* The same, of which only the outline is read. */
extern const struct fields evaluation_outline_fields;
extern const struct fields tool_execution_outline_fields;
extern const struct fields execution_outline_fields;

enum { HEAD_FIELDS = 3 }; /* id, collector, time */

/* Of one hook; and those that say something of a hook that was skipped. */
extern const struct fields execution_fields;
extern const struct fields execution_skipped_fields;

/* Of the payload. */
extern const struct fields payload_fields;

/* Append those fields of *record that are set, each with a comma before it. */
void fields_encode(const struct fields *f, const void *record, struct buf *out);

/* Append one of them. */
void field_encode(const struct field *f, const void *record, struct buf *out);

/*
 * Fill *record, which was zeroed, from an object that was checked. Unknown keys
 * are passed over; of a key that stands twice the first counts. The object may
 * be open (payload_next_open): it is closed by the walk.
 * Errors: ERR_INVALID names the key; ERR_TOO_BIG at the arena's limit.
 */
bool fields_decode(const struct fields *f, struct json_value *object, void *record, struct arena *a,
                   struct err *err) MUST_CHECK;

/* What fields_decode() fills in an evaluation by the kinds of the same names. */
bool payload_facts_decode(struct json_value *object, struct payload_facts *ret, struct arena *a,
                          struct err *err) MUST_CHECK;
bool hooks_decode(struct json_value *array, struct evaluation *e, bool outline, struct arena *a,
                  struct err *err) MUST_CHECK;

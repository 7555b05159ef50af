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
#include "collector/record/payload_reader.h"
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
    FIELD_TYPE,    /* encode begins with it; read: the table's own, where it has none an enum */
    FIELD_SCHEMA,  /* encode begins with it; read: one that we read */
};

/* One enum's spelling, both ways. */
struct words {
    const char *(*name)(unsigned v);
    unsigned (*from)(struct slice name);
};

/* What outline.h takes of a record; of a hook, the last two. */
enum outline_part {
    OUTLINE_NONE = 0,
    OUTLINE_TYPE,
    OUTLINE_ID,
    OUTLINE_COLLECTOR,
    OUTLINE_TIME,
    OUTLINE_THREAD_ID,
    OUTLINE_TASK_RUN_ID,
    OUTLINE_USER_ID,
    OUTLINE_ORDINAL,
    OUTLINE_DECISION,
};

struct field {
    struct slice lead; /* the key as it stands in JSON behind another: `,"thread_id":` */
    enum field_kind kind;
    size_t offset; /* of the value in its struct */
    size_t has;    /* of the bool that says whether there is one; 0: no such bool */
    bool always;   /* written when zero, too */
    bool identity; /* of an evaluation: also in the rows derived from it */
    enum outline_part outline;
    const struct words *words;
};

struct fields {
    const struct field *rows;
    size_t n;
    enum record_type type; /* NONE: of any record, or of what is none */
};

/* Each begins with the keys of struct record_head, which every record begins with. */
extern const struct fields evaluation_fields;
extern const struct fields tool_execution_fields;
extern const struct fields hook_registry_fields;
extern const struct fields gap_fields;
extern const struct fields admin_fields;

enum { HEAD_FIELDS = 5 }; /* type, schema, id, collector, time */

/* The head alone, of any record. */
struct any_record {
    struct record_head head;
    enum record_type type;
};
extern const struct fields head_fields;

/* Of one hook; and those that say something of a hook that was skipped. */
extern const struct fields execution_fields;
extern const struct fields execution_skipped_fields;

/* Of the payload. */
extern const struct fields payload_fields;

/* Append those fields of *record that are set, each with a comma before it. */
void fields_encode(const struct fields *f, const void *record, struct buf *out);

/* Append one of them. */
void field_encode(const struct field *f, const void *record, struct buf *out);

/* The key, without its quotes. */
struct slice field_key(const struct field *f);

/* A walk of an object's members, and where in the table the next of them is expected. */
struct fields_walk {
    const struct fields *f;
    struct payload_reader *r;
    size_t next;
    uint64_t seen; /* a bit a row */
};

/*
 * To the next member's value, and its row; NULL: a key that is not known, or that came
 * before. False at the end.
 */
bool fields_next(struct fields_walk *w, const struct field **ret_row);

/*
 * What a record's type and schema have to be: when the walk is at one of them with its value
 * v, *ret_type (may be NULL) is the type; and when it is at its end: were both there?
 * Errors: ERR_INVALID.
 */
bool fields_check_type(const struct fields *f, struct json_value v, enum record_type *ret_type,
                       struct err *err) MUST_CHECK;
bool fields_check_schema(struct json_value v, struct err *err) MUST_CHECK;
bool fields_opened(const struct fields_walk *w, struct err *err) MUST_CHECK;

/*
 * Fill *record, which was zeroed, from the object at hand. Unknown keys are passed over; of
 * a key that stands twice the first counts.
 * Errors: ERR_INVALID names the key, or the place of what is no JSON; ERR_TOO_BIG at the
 * arena's limit.
 */
bool fields_decode(const struct fields *f, struct payload_reader *r, void *record, struct arena *a,
                   struct err *err) MUST_CHECK;

/* What fields_decode() fills in an evaluation by the kinds of the same names. */
bool payload_facts_decode(struct payload_reader *r, struct payload_facts *ret, struct arena *a,
                          struct err *err) MUST_CHECK;
bool hooks_decode(struct payload_reader *r, struct evaluation *e, struct arena *a, struct err *err)
    MUST_CHECK;

/* config_schema: every key of hooktrail.yaml, its type, its range and its default. For config*.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collector/base/config.h"

enum setting_kind {
    SETTING_NUMBER,    /* integer from min to max */
    SETTING_FLAG,      /* true or false */
    SETTING_SWITCH,    /* one of two words; the field is a bool: the second one */
    SETTING_WORD,      /* one of `words`; the field is a string */
    SETTING_TEXT,      /* one line */
    SETTING_PATH,      /* made absolute: STATE/… or relative to the file's folder */
    SETTING_SECRET,    /* a text with secrets in it; or env:NAME, file:PATH */
    SETTING_LISTENERS, /* list, each one resolved */
    SETTING_TEXTS,     /* list of texts */
    SETTING_OPTIONS,   /* a mapping of scalars, handed on as strings */
};

enum { SETTING_WORDS = 3 };

struct setting {
    const char *key;
    enum setting_kind kind;
    ptrdiff_t field;                  /* offset in struct config plus 1; 0: no field */
    int64_t number;                   /* default of a number or flag */
    int64_t min, max;                 /* of a number */
    int64_t unit;                     /* the field is the number times this; 0: once */
    const char *text;                 /* default of all others; NULL: none */
    bool required;                    /* there is no default */
    const char *words[SETTING_WORDS]; /* of a switch or word; the first is the default */
};

/* Keys of one mapping. */
struct section {
    const char *name; /* the key under which it stands */
    const struct setting *settings;
    size_t n;
};

/* The four fixed sections, and the mappings of which the user chooses some. */
extern const struct section config_collect, config_journal, config_serve;
extern const struct section config_contracts[3];
extern const struct section config_sinks[4];

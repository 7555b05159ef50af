/*
 * payload_scan: what the parts of `payload` share. For text that payload_check()
 * has passed; on other text the results are useless, but stay inside it. Pure.
 */
#pragma once

#include "collector/record/payload.h"

/* The kind of value that begins so; NONE: none does. */
static inline enum json_kind payload_kind_of(char first)
{
    static const unsigned char kinds[256] = {
        ['"'] = JSON_KIND_STRING, ['{'] = JSON_KIND_OBJECT, ['['] = JSON_KIND_ARRAY,
        ['n'] = JSON_KIND_NULL,   ['t'] = JSON_KIND_TRUE,   ['f'] = JSON_KIND_FALSE,
        ['-'] = JSON_KIND_NUMBER, ['0'] = JSON_KIND_NUMBER, ['1'] = JSON_KIND_NUMBER,
        ['2'] = JSON_KIND_NUMBER, ['3'] = JSON_KIND_NUMBER, ['4'] = JSON_KIND_NUMBER,
        ['5'] = JSON_KIND_NUMBER, ['6'] = JSON_KIND_NUMBER, ['7'] = JSON_KIND_NUMBER,
        ['8'] = JSON_KIND_NUMBER, ['9'] = JSON_KIND_NUMBER,
    };

    return (enum json_kind)kinds[(unsigned char)first];
}

/* s without the blanks at its start. */
struct slice payload_skip_blanks(struct slice s);

/* s without its first n bytes. */
struct slice payload_skip(struct slice s, size_t n);

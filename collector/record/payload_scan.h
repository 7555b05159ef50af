/*
 * payload_scan: what the parts of `payload` share. For text that payload_check()
 * has passed; on other text the results are useless, but stay inside it. Pure.
 */
#pragma once

#include "collector/record/payload.h"

/* The value whose text is raw; its first byte tells the kind. */
struct json_value payload_value(struct slice raw);

/* Bytes of the string at the start of s, both quotes included. */
size_t payload_string_length(struct slice s);

/* Bytes of the value at the start of s. */
size_t payload_value_length(struct slice s);

/* s without the blanks at its start. */
struct slice payload_skip_blanks(struct slice s);

/* s without its first n bytes. */
struct slice payload_skip(struct slice s, size_t n);

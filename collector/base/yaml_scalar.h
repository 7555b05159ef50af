/* yaml_scalar: what one scalar of a YAML file means (YAML 1.2 core schema). Pure. */
#pragma once

#include <jansson.h>

#include "collector/base/slice.h"

/*
 * A new value. Quoted and block scalars (plain false) are strings; a plain one is
 * null, true, false or a number when it looks like one, else a string.
 * NULL, and one line in ret_text, for what JSON cannot hold or what readers of
 * YAML disagree on: infinities, numbers too large, 0777, a NUL character.
 */
json_t *yaml_scalar(struct slice text, bool plain, char *ret_text, size_t text_size) MUST_CHECK;

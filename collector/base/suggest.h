/* suggest: what a person who misspelt a name may have meant. Pure. */
#pragma once

#include <stddef.h>

#include "collector/base/slice.h"

/*
 * The nearest of n names, when few enough letters differ (a third of the word,
 * at least one; two swapped letters count once); NULL when none is near.
 */
const char *suggest_name(struct slice word, const char *const *names, size_t n);

/* text: blanks at the ends of what a hook or a person wrote. Pure. */
#pragma once

#include "collector/base/slice.h"

/* s without the white space (Unicode's White_Space, as .NET trims) at its ends. */
struct slice text_trim(struct slice s);

/* True when there is nothing but white space in s, or nothing at all. */
bool text_is_blank(struct slice s);

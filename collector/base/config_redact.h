/* config_redact: a configuration that may be shown. For config.c. */
#pragma once

#include <jansson.h>

/* A copy of the effective configuration, new, in which passwords are "***". */
json_t *config_redact(const json_t *values);

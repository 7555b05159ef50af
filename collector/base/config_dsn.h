/* config_dsn: the options of a PostgreSQL connection string, as libpq reads them. Pure. */
#pragma once

#include "collector/base/err.h"
#include "collector/base/slice.h"

/* True for a URI; all else is a list of keyword=value. */
bool dsn_is_uri(struct slice dsn);

/*
 * Cut the first keyword=value off such a list; a quoted value keeps its quotes. False at
 * the end, where *rest is empty, and where the rest is no such list.
 */
bool dsn_cut_option(struct slice *rest, struct slice *ret_key, struct slice *ret_value) MUST_CHECK;

/*
 * Find what cannot be meant: a keyword that is nearly one of libpq's, an sslmode that there
 * is not. Nothing else of the string is told, as it may be a password that was torn apart.
 * What passes may still be wrong: libpq decides.
 *
 * Errors: ERR_INVALID.
 */
bool dsn_check(const char *dsn, struct err *err) MUST_CHECK;

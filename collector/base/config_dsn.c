#include "collector/base/config_dsn.h"

#include <ctype.h>
#include <string.h>

#include "collector/base/suggest.h"

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

bool dsn_is_uri(struct slice dsn)
{
    return slice_starts_with(dsn, SLICE("postgres://")) ||
           slice_starts_with(dsn, SLICE("postgresql://"));
}

static size_t skip_blanks(struct slice s, size_t i)
{
    while (i < s.len && isspace((unsigned char)s.ptr[i])) {
        i++;
    }
    return i;
}

/* Where a value ends that begins at i: libpq's quotes and backslashes. */
static size_t end_of_value(struct slice s, size_t i)
{
    bool quoted = i < s.len && s.ptr[i] == '\'';

    i += quoted ? 1 : 0;
    while (i < s.len) {
        char c = s.ptr[i];

        if (quoted ? c == '\'' : isspace((unsigned char)c) != 0) {
            return i + (quoted ? 1 : 0);
        }
        i += c == '\\' && i + 1 < s.len ? 2 : 1;
    }
    return i;
}

bool dsn_cut_option(struct slice *rest, struct slice *ret_key, struct slice *ret_value)
{
    struct slice s = *rest;
    size_t from = skip_blanks(s, 0);
    size_t i = from;

    while (i < s.len && s.ptr[i] != '=' && !isspace((unsigned char)s.ptr[i])) {
        i++;
    }
    *ret_key = (struct slice){ .ptr = s.ptr + from, .len = i - from };
    i = skip_blanks(s, i);
    *rest = (struct slice){ .ptr = s.ptr + from, .len = s.len - from };
    if (i == s.len || s.ptr[i] != '=') {
        return false;
    }

    size_t value = skip_blanks(s, i + 1);
    size_t end = end_of_value(s, value);

    *ret_value = (struct slice){ .ptr = s.ptr + value, .len = end - value };
    *rest = (struct slice){ .ptr = s.ptr + end, .len = s.len - end };
    return true;
}

/* libpq's keywords; one that newer libpqs alone know is near none of these. */
static const char *const known[] = {
    "application_name",
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "dbname",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "krbsrvname",
    "load_balance_hosts",
    "max_protocol_version",
    "min_protocol_version",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_issuer",
    "oauth_scope",
    "options",
    "passfile",
    "password",
    "port",
    "replication",
    "require_auth",
    "requirepeer",
    "scram_client_key",
    "scram_server_key",
    "service",
    "servicefile",
    "ssl",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslkeylogfile",
    "sslmode",
    "sslnegotiation",
    "sslpassword",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
};

static bool check_keyword(struct slice key, struct err *err)
{
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (slice_equal(key, slice_from_cstr(known[i]))) {
            return true;
        }
    }

    const char *near = suggest_name(key, known, COUNT_OF(known));

    return !near || err_set(err, ERR_INVALID, "has an unknown keyword; did you mean '%s'?", near);
}

static bool check_option(struct slice key, struct slice value, struct err *err)
{
    static const char *const modes[] = { "disable", "allow",     "prefer",
                                         "require", "verify-ca", "verify-full" };

    if (!check_keyword(key, err)) {
        return false;
    }
    if (!slice_equal(key, SLICE("sslmode")) || (value.len > 0 && value.ptr[0] == '\'')) {
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        if (slice_equal(value, slice_from_cstr(modes[i]))) {
            return true;
        }
    }
    return err_set(
        err, ERR_INVALID,
        "sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full");
}

/* The query behind a URI's last @, which a password may not hold unescaped. */
static bool check_query(struct slice uri, struct err *err)
{
    const char *at = memrchr(uri.ptr, '@', uri.len);
    struct slice rest = at ? (struct slice){ at, uri.len - (size_t)(at - uri.ptr) } : uri;
    struct slice ignored;

    (void)slice_cut(rest, '?', &ignored, &rest);
    while (rest.len > 0) {
        struct slice pair;
        struct slice key;
        struct slice value;

        (void)slice_cut(rest, '&', &pair, &rest);
        if (slice_cut(pair, '=', &key, &value) && !check_option(key, value, err)) {
            return false;
        }
    }
    return true;
}

bool dsn_check(const char *dsn, struct err *err)
{
    struct slice rest = slice_from_cstr(dsn);
    struct slice key;
    struct slice value;

    if (dsn_is_uri(rest)) {
        return check_query(rest, err);
    }
    while (dsn_cut_option(&rest, &key, &value)) {
        if (!check_option(key, value, err)) {
            return false;
        }
    }
    return true;
}

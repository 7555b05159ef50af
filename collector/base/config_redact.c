#include "collector/base/config_redact.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "collector/base/buf.h"

#define HIDDEN "***"

enum { DSN_MAX = 8192 };

/* What of a connection string may be shown; all else, misspelt passwords included, is not. */
static bool is_shown(struct slice key)
{
    static const char *const shown[] = {
        "host",
        "hostaddr",
        "port",
        "dbname",
        "user",
        "sslmode",
        "connect_timeout",
        "sslrootcert",
        "sslcert",
        "application_name",
        "target_session_attrs",
    };

    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        if (slice_equal(key, slice_from_cstr(shown[i]))) {
            return true;
        }
    }
    return false;
}

/* A value that only points to the secret may be shown. */
static bool is_reference(const char *z)
{
    return strncmp(z, "env:", 4) == 0 || strncmp(z, "file:", 5) == 0;
}

static bool cut_at_last(struct slice s, char sep, struct slice *ret_head, struct slice *ret_tail)
{
    const char *at = s.len > 0 ? memrchr(s.ptr, sep, s.len) : NULL;

    if (!at) {
        return false;
    }
    *ret_head = (struct slice){ .ptr = s.ptr, .len = (size_t)(at - s.ptr) };
    *ret_tail = (struct slice){ .ptr = at + 1, .len = s.len - ret_head->len - 1 };
    return true;
}

/* scheme://USER:PASSWORD@HOST…?password=…&… */
static void redact_uri(struct buf *out, struct slice uri)
{
    const char *start = memchr(uri.ptr, ':', uri.len);
    struct slice rest = { .ptr = start + 3, .len = uri.len - (size_t)(start + 3 - uri.ptr) };
    struct slice path;
    struct slice query;
    struct slice userinfo;
    struct slice host;

    buf_add(out, (struct slice){ .ptr = uri.ptr, .len = (size_t)(start + 3 - uri.ptr) });

    bool has_query = slice_cut(rest, '?', &path, &query);

    /* The last @: one inside a password that nobody escaped hides what is before it, too. */
    if (cut_at_last(path, '@', &userinfo, &host)) {
        struct slice user;
        struct slice password;

        buf_add(out, slice_cut(userinfo, ':', &user, &password) ? user : userinfo);
        buf_addf(out, "%s@", password.len > 0 ? ":" HIDDEN : "");
        buf_add(out, host);
    } else {
        buf_add(out, path);
    }
    for (bool more = has_query, first = true; more; first = false) {
        struct slice pair;
        struct slice key;
        struct slice value;

        more = slice_cut(query, '&', &pair, &query);
        (void)slice_cut(pair, '=', &key, &value);
        buf_add_char(out, first ? '?' : '&');
        buf_add(out, is_shown(key) ? pair : key);
        if (!is_shown(key)) {
            buf_addf(out, "=" HIDDEN);
        }
    }
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

/* keyword = value pairs; false when it is no such list: then nothing of it may be shown. */
static bool redact_pairs(struct buf *out, struct slice s)
{
    size_t i = skip_blanks(s, 0);
    bool first = true;

    while (i < s.len) {
        size_t from = i;

        while (i < s.len && s.ptr[i] != '=' && !isspace((unsigned char)s.ptr[i])) {
            i++;
        }

        struct slice key = { .ptr = s.ptr + from, .len = i - from };

        i = skip_blanks(s, i);
        if (i == s.len || s.ptr[i] != '=') {
            return false;
        }

        size_t value = skip_blanks(s, i + 1);

        i = end_of_value(s, value);
        buf_addf(out, "%s%" SLICE_FMT "=", first ? "" : " ", SLICE_ARG(key));
        buf_add(out, is_shown(key) ? (struct slice){ .ptr = s.ptr + value, .len = i - value }
                                   : SLICE(HIDDEN));
        first = false;
        i = skip_blanks(s, i);
    }
    return true;
}

static json_t *redact_dsn(const json_t *v)
{
    CLEANUP(buf_done) struct buf out = { .max_bytes = DSN_MAX };
    const char *z = json_string_value(v);

    if (!z || is_reference(z)) {
        return json_deep_copy(v);
    }

    struct slice s = slice_from_cstr(z);
    bool uri =
        slice_starts_with(s, SLICE("postgres://")) || slice_starts_with(s, SLICE("postgresql://"));

    if (uri) {
        redact_uri(&out, s);
    } else if (!redact_pairs(&out, s)) {
        return json_string(HIDDEN);
    }
    return json_string(buf_cstr(&out));
}

/* Properties of librdkafka whose values are secrets, whatever they are called later. */
static bool is_secret_property(const char *key)
{
    return strcasestr(key, "password") || strcasestr(key, "secret") || strcasestr(key, ".pem") ||
           strcasestr(key, "token") || strcasestr(key, "jaas") ||
           strcasestr(key, "sasl.oauthbearer.config");
}

static void redact_properties(json_t *properties)
{
    const char *key;
    json_t *v;

    json_object_foreach(properties, key, v)
    {
        if (is_secret_property(key) && !is_reference(json_string_value(v))) {
            (void)json_string_set(v, HIDDEN);
        }
    }
}

json_t *config_redact(const json_t *values)
{
    json_t *shown = json_deep_copy(values);
    json_t *sinks = json_object_get(shown, "sinks");
    json_t *postgres = json_object_get(sinks, "postgres");

    if (postgres) {
        (void)json_object_set_new(postgres, "dsn", redact_dsn(json_object_get(postgres, "dsn")));
    }
    redact_properties(json_object_get(json_object_get(sinks, "kafka"), "properties"));
    return shown;
}

#include "collector/base/config_redact.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "collector/base/buf.h"
#include "collector/base/config.h"
#include "collector/base/config_dsn.h"

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

static bool cut_at_last(struct slice s, char sep, size_t *ret)
{
    const char *at = s.len > 0 ? memrchr(s.ptr, sep, s.len) : NULL;

    *ret = at ? (size_t)(at - s.ptr) : 0;
    return at != NULL;
}

/*
 * Take "USER:PASSWORD@" off *rest. As libpq reads it, an @ before the first slash ends it,
 * so a password may hold a question mark; else one before the first question mark, for a
 * slash in a password that nobody escaped. The last such @: all before it is hidden.
 */
static bool take_userinfo(struct slice *rest, struct slice *ret)
{
    struct slice head;
    struct slice tail;
    size_t n;

    (void)slice_cut(*rest, '/', &head, &tail);
    if (!cut_at_last(head, '@', &n)) {
        (void)slice_cut(*rest, '?', &head, &tail);
        if (!cut_at_last(head, '@', &n)) {
            return false;
        }
    }
    *ret = (struct slice){ .ptr = rest->ptr, .len = n };
    *rest = (struct slice){ .ptr = rest->ptr + n + 1, .len = rest->len - n - 1 };
    return true;
}

/* A name of a user that cannot be something else, read wrongly. */
static bool is_plain(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (!isalnum((unsigned char)name.ptr[i]) && !strchr("._-%~+", name.ptr[i])) {
            return false;
        }
    }
    return true;
}

static bool redact_userinfo(struct buf *out, struct slice userinfo)
{
    struct slice user;
    struct slice password;

    (void)slice_cut(userinfo, ':', &user, &password);
    buf_add(out, user);
    buf_addf(out, "%s@", password.len > 0 ? ":" HIDDEN : "");
    return is_plain(user);
}

static bool redact_query(struct buf *out, struct slice query)
{
    for (char before = '?'; query.len > 0; before = '&') {
        struct slice pair;
        struct slice key;
        struct slice value;

        (void)slice_cut(query, '&', &pair, &query);
        if (!slice_cut(pair, '=', &key, &value)) {
            return false;
        }
        buf_add_char(out, before);
        buf_add(out, key);
        buf_add_char(out, '=');
        buf_add(out, is_shown(key) ? value : SLICE(HIDDEN));
    }
    return true;
}

/* scheme://USER:PASSWORD@HOST…?password=…&…; false as redact_pairs() below. */
static bool redact_uri(struct buf *out, struct slice uri)
{
    const char *colon = memchr(uri.ptr, ':', uri.len);
    size_t scheme = (size_t)(colon - uri.ptr) + sizeof("://") - 1;
    struct slice rest = { .ptr = uri.ptr + scheme, .len = uri.len - scheme };
    struct slice userinfo;
    struct slice place;
    struct slice query;

    buf_add(out, (struct slice){ .ptr = uri.ptr, .len = scheme });
    if (take_userinfo(&rest, &userinfo) && !redact_userinfo(out, userinfo)) {
        return false;
    }
    (void)slice_cut(rest, '?', &place, &query);
    buf_add(out, place);
    return redact_query(out, query);
}

/* keyword = value pairs; false when it is no such list: then nothing of it may be shown. */
static bool redact_pairs(struct buf *out, struct slice rest)
{
    struct slice key;
    struct slice value;

    while (dsn_cut_option(&rest, &key, &value)) {
        buf_addf(out, "%s%" SLICE_FMT "=", out->len_bytes > 0 ? " " : "", SLICE_ARG(key));
        buf_add(out, is_shown(key) ? value : SLICE(HIDDEN));
    }
    return rest.len == 0;
}

static json_t *redact_dsn(const json_t *v)
{
    CLEANUP(buf_done) struct buf out = { .max_bytes = DSN_MAX };
    const char *z = json_string_value(v);

    if (!z || config_is_reference(z)) {
        return json_deep_copy(v);
    }

    struct slice s = slice_from_cstr(z);
    bool ok = dsn_is_uri(s) ? redact_uri(&out, s) : redact_pairs(&out, s);

    return json_string(ok ? buf_cstr(&out) : HIDDEN);
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
        if (is_secret_property(key) && !config_is_reference(json_string_value(v))) {
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

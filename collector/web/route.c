#include "collector/web/route.h"

#include <stdio.h>
#include <string.h>

/* Cut the first segment off a path that begins with a slash. */
static struct slice next_segment(struct slice *path)
{
    struct slice head;
    struct slice tail;
    struct slice rest = { .ptr = path->ptr + 1, .len = path->len - 1 };

    if (slice_cut(rest, '/', &head, &tail)) {
        *path = (struct slice){ .ptr = tail.ptr - 1, .len = tail.len + 1 };
    } else {
        *path = (struct slice){ 0 };
    }
    return head;
}

static void keep_param(struct route_match *m, struct slice name, struct slice value)
{
    if (m->n_params < ROUTE_PARAMS_MAX) {
        m->params[m->n_params++] = (struct route_param){ .name = name, .value = value };
    }
}

static bool is_path(struct slice s)
{
    return s.len > 0 && s.ptr[0] == '/';
}

/* Match path against pattern; the parameters go to *m. */
static bool fits(struct slice pattern, struct slice path, struct route_match *m)
{
    m->n_params = 0;
    while (is_path(pattern) && is_path(path)) {
        struct slice want = next_segment(&pattern);
        struct slice got = next_segment(&path);

        if (want.len > 0 && want.ptr[0] == ':') {
            if (got.len == 0) {
                return false;
            }
            keep_param(m, (struct slice){ .ptr = want.ptr + 1, .len = want.len - 1 }, got);
        } else if (!slice_equal(want, got)) {
            return false;
        }
    }
    return pattern.len == 0 && path.len == 0;
}

struct route_match route_find(const struct web_route *routes, size_t n, const char *method,
                              struct slice path)
{
    struct route_match found = { 0 };

    for (size_t i = 0; i < n; i++) {
        struct route_match m = { .route = &routes[i] };

        if (!fits(slice_from_cstr(routes[i].path), path, &m)) {
            continue;
        }
        m.method_fits = strcmp(routes[i].method, method) == 0;
        if (m.method_fits) {
            return m;
        }
        found = m;
    }
    return found;
}

void route_allowed(const struct web_route *routes, size_t n, struct slice path, char *ret_text,
                   size_t size)
{
    size_t len = 0;

    ret_text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        struct route_match m;

        if (fits(slice_from_cstr(routes[i].path), path, &m) && len < size) {
            int more =
                snprintf(ret_text + len, size - len, "%s%s%s", len > 0 ? ", " : "",
                         routes[i].method, strcmp(routes[i].method, "GET") == 0 ? ", HEAD" : "");

            len += more > 0 ? (size_t)more : 0;
        }
    }
}

bool route_takes(const char *words, struct slice name)
{
    struct slice rest = slice_from_cstr(words);
    struct slice word;
    bool more;

    do {
        more = slice_cut(rest, ' ', &word, &rest);
        if (name.len > 0 && slice_equal(word, name)) {
            return true;
        }
    } while (more);
    return false;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool route_decode(struct slice raw, struct arena *a, struct slice *ret)
{
    char *out = arena_alloc(a, raw.len + 1, 1);
    size_t n = 0;

    if (!out) {
        return false;
    }
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.ptr[i];

        if (c == '%') {
            int high = raw.len - i > 2 ? digit(raw.ptr[i + 1]) : -1;
            int low = raw.len - i > 2 ? digit(raw.ptr[i + 2]) : -1;

            if (high < 0 || low < 0) {
                return false;
            }
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0') {
            return false;
        }
        out[n++] = c;
    }
    *ret = (struct slice){ .ptr = out, .len = n };
    return true;
}

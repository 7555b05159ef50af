/*
 * sre_input: what a hook reads.
 *
 * The payload's bytes as they came. Two things are spliced into them: the path
 * of a file in place of a trajectory, and what an earlier event's hooks added,
 * behind the real keys, so that a reader of the first occurrence is never fooled.
 */
#include "collector/contract/sre.h"

#include <string.h>
#include <unistd.h>

#include "collector/process/process.h"

/* Keys of the pipeline's own, whose genuine value replaces a hook's. */
static const char *const reserved_keys[] = {
    "cliExecution", "approval", "browser", "userQuestion", SRE_AGGREGATION_KEY,
};

static bool is_overruled(struct json_value payload, struct slice raw_key)
{
    for (size_t i = 0; i < sizeof(reserved_keys) / sizeof(reserved_keys[0]); i++) {
        struct slice name = slice_from_cstr(reserved_keys[i]);

        if (payload_string_is(raw_key, name)) {
            return payload_get(payload, name).kind != JSON_KIND_NONE;
        }
    }
    return false;
}

static void add_metadata(const struct dispatch *d, struct json_value metadata, struct buf *out)
{
    struct payload_iter it = payload_iter(metadata);
    struct slice key;
    struct json_value value;

    while (payload_next(&it, &key, &value)) {
        if (!is_overruled(d->payload, key)) {
            buf_add(out, SLICE(","));
            buf_add(out, key);
            buf_add(out, SLICE(":"));
            buf_add(out, value.raw);
        }
    }
}

/* A summary that is the trajectory itself, not the path of one. */
static bool is_trajectory(struct slice summary)
{
    return summary.len > 0 && (summary.ptr[0] == '{' || summary.ptr[0] == '[');
}

/* *ret_path stays NULL where the summary reaches hooks as it came. */
static bool store_summary(struct dispatch *d, struct json_value summary, const char **ret_path,
                          struct err *err)
{
    struct slice text;

    if (summary.kind != JSON_KIND_STRING) {
        return true;
    }
    if (!payload_string(summary.raw, &d->arena, &text, NULL)) {
        return err_set(err, ERR_TOO_BIG, "execution_summary is too long");
    }
    return !is_trajectory(text) || dispatch_file(d, "execution_summary.json", text, ret_path, err);
}

static void splice(const struct dispatch *d, const struct sre_request *r, const char *path,
                   struct buf *out)
{
    struct slice raw = d->payload.raw;
    size_t begin = path ? (size_t)(r->summary.raw.ptr - raw.ptr) : 0;
    size_t end = path ? begin + r->summary.raw.len : 0;

    buf_add(out, (struct slice){ .ptr = raw.ptr, .len = begin });
    if (path) {
        buf_add_json_string(out, slice_from_cstr(path));
    }
    /* All but the closing brace; the object is never empty, its event has a name. */
    buf_add(out, (struct slice){ .ptr = raw.ptr + end, .len = raw.len - end - 1 });
    if (r->metadata.kind == JSON_KIND_OBJECT) {
        add_metadata(d, r->metadata, out);
    }
    buf_add(out, SLICE("}"));
}

static bool make_body(struct dispatch *d, struct sre_request *r, struct err *err)
{
    const char *path = NULL;
    struct buf out;

    if (!store_summary(d, r->summary, &path, err)) {
        return false;
    }
    if (!path && r->metadata.kind != JSON_KIND_OBJECT) {
        r->body = d->payload.raw;
        return true;
    }
    buf_init(&out, DISPATCH_ARENA_BYTES);
    splice(d, r, path, &out);

    bool ok = buf_ok(&out) && arena_dup(&d->arena, buf_slice(&out), &r->body);

    buf_done(&out);
    return ok || err_set(err, ERR_TOO_BIG, "the payload is too long");
}

/* The prompt with the input in place of $ARGUMENTS, or behind it under a heading. */
static void fill_prompt(struct slice prompt, struct slice input, struct buf *out)
{
    static const char placeholder[] = "$ARGUMENTS";
    const size_t n = sizeof(placeholder) - 1;
    const char *at = memmem(prompt.ptr, prompt.len, placeholder, n);

    if (!at) {
        buf_add(out, prompt);
        buf_add(out, SLICE("\n\nContext:\n"));
        buf_add(out, input);
        return;
    }
    while (at) {
        size_t before = (size_t)(at - prompt.ptr);

        buf_add(out, (struct slice){ .ptr = prompt.ptr, .len = before });
        buf_add(out, input);
        prompt = (struct slice){ .ptr = at + n, .len = prompt.len - before - n };
        at = prompt.len > 0 ? memmem(prompt.ptr, prompt.len, placeholder, n) : NULL;
    }
    buf_add(out, prompt);
}

static bool prompt_input(struct dispatch *d, const struct sre_hook *hook, struct hook_input *ret,
                         struct err *err)
{
    struct buf out;

    buf_init(&out, DISPATCH_ARENA_BYTES);
    fill_prompt(hook->prompt, ret->body, &out);

    bool ok = buf_ok(&out) && arena_dup(&d->arena, buf_slice(&out), &ret->body);

    buf_done(&out);
    ret->model = hook->model;
    return ok || err_set(err, ERR_TOO_BIG, "the prompt is too long");
}

/* Our environment without the tag of a run, which is each run's own. */
static const char *const *environment(struct arena *a)
{
    size_t n = 0;

    while (environ[n]) {
        n++;
    }

    const char **copy = arena_alloc(a, n + 1, sizeof(*copy));
    size_t kept = 0;

    for (size_t i = 0; copy && i < n; i++) {
        if (strncmp(environ[i], PROCESS_TAG "=", strlen(PROCESS_TAG) + 1) != 0) {
            copy[kept++] = environ[i];
        }
    }
    return copy;
}

bool sre_input(struct dispatch *d, const struct chain *chain, const struct step *step,
               struct hook_input *ret, struct err *err)
{
    struct sre_request *r = d->own;
    const struct sre_hook *own = step->hook->own;

    (void)chain;
    if (r->body.len == 0 && !make_body(d, r, err)) {
        return false;
    }
    *ret = (struct hook_input){ .body = r->body };
    if (step->hook->type == HOOK_PROMPT) {
        return prompt_input(d, own, ret, err);
    }
    ret->argv = own->argv;
    ret->envp = environment(&d->arena);
    if (!ret->argv || !ret->envp) {
        return err_set(err, ERR_TOO_BIG, "no room for the hook's environment");
    }
    return true;
}

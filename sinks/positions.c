#include "sinks/positions.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/base/utf8.h"

enum { WRITE_EVERY_MS = 1000, NAME_BYTES = 128, FOLDER_MODE = 0750 };
static const char folder[] = "sinks";
static const char suffix[] = ".positions.json";
static const char *const states[] = { "connecting", "ok", "retrying", "broken" };

static void free_json(json_t **j)
{
    json_decref(*j);
    *j = NULL;
}

static void file_name(const char *sink, char ret[NAME_BYTES])
{
    (void)snprintf(ret, NAME_BYTES, "%.64s%s", sink, suffix);
}

static bool open_folder(const char *state_dir, int *ret_fd, struct err *err)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", state_dir, folder);
    if (mkdir(path, FOLDER_MODE) < 0 && errno != EEXIST) {
        return err_errno(err, errno, "%s", path);
    }
    *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd >= 0 || err_errno(err, errno, "%s", path);
}

/* *ret is NULL when there is no such file. */
static bool read_json(int dir_fd, const char *name, json_t **ret, struct err *err)
{
    CLEANUP(fs_closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    json_error_t why;

    *ret = NULL;
    if (fd < 0) {
        return errno == ENOENT || err_errno(err, errno, "%s", name);
    }
    *ret = json_loadfd(fd, JSON_REJECT_DUPLICATES, &why);
    return *ret || err_set(err, ERR_CORRUPT, "%s:%d: %s", name, why.line, why.text);
}

static bool write_json(int dir_fd, const char *name, const json_t *j, struct err *err)
{
    char *text = json_dumps(j, JSON_INDENT(1));
    bool written = text && fs_replace(dir_fd, name, slice_from_cstr(text), err);

    if (!text) {
        (void)err_set(err, ERR_INVALID, "%s: cannot be written as JSON", name);
    }
    free(text);
    return written;
}

static void take(struct positions *p, const json_t *j)
{
    const char *journal;
    json_t *next;
    size_t i;

    json_object_foreach(json_object_get(j, "positions"), journal, next)
    {
        if (json_integer_value(next) > 0) {
            positions_set(p, slice_from_cstr(journal), (uint64_t)json_integer_value(next));
        }
    }
    json_object_foreach(json_object_get(j, "told"), journal, next)
    {
        if (json_integer_value(next) > 0) {
            positions_tell(p, slice_from_cstr(journal), (uint64_t)json_integer_value(next));
        }
    }
    json_array_foreach(json_object_get(j, "here"), i, next)
    {
        if (json_is_string(next)) {
            positions_set_here(p, slice_from_cstr(json_string_value(next)), true);
        }
    }
    p->dead = (uint64_t)json_integer_value(json_object_get(j, "dead"));
    p->lost = (uint64_t)json_integer_value(json_object_get(j, "lost"));

    const char *delivered = json_string_value(json_object_get(j, "delivered"));

    if (!clock_parse(slice_from_cstr(delivered), &p->delivered_us)) {
        p->delivered_us = 0;
    }
}

bool positions_load(const char *state_dir, const char *sink, struct positions *ret, struct err *err)
{
    CLEANUP(fs_closep) int dir_fd = -1;
    CLEANUP(free_json) json_t *j = NULL;
    char name[NAME_BYTES];

    *ret = (struct positions){ .state_dir = state_dir, .sink = sink };
    file_name(sink, name);
    if (!open_folder(state_dir, &dir_fd, err) || !read_json(dir_fd, name, &j, err)) {
        return false;
    }
    if (j) {
        take(ret, j);
    }
    ret->changed = true; /* it is configured now, whatever the file says */
    return true;
}

void positions_done(struct positions *p)
{
    free(p->list);
    *p = (struct positions){ 0 };
}

static struct positions_entry *find(const struct positions *p, struct slice journal)
{
    for (size_t i = 0; i < p->n; i++) {
        if (slice_equal(slice_from_cstr(p->list[i].journal), journal)) {
            return &p->list[i];
        }
    }
    return NULL;
}

uint64_t positions_get(const struct positions *p, struct slice journal)
{
    const struct positions_entry *e = find(p, journal);

    return e && e->next > 0 ? e->next : 1;
}

/* The entry of a journal, made where there is none. */
static struct positions_entry *entry_of(struct positions *p, struct slice journal)
{
    struct positions_entry *e = find(p, journal);

    if (e) {
        return e;
    }
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 8;
        p->list = xrealloc(p->list, p->cap * sizeof(*p->list));
    }
    e = &p->list[p->n++];
    *e = (struct positions_entry){ 0 };
    (void)snprintf(e->journal, sizeof(e->journal), "%" SLICE_FMT, SLICE_ARG(journal));
    return e;
}

void positions_set(struct positions *p, struct slice journal, uint64_t next)
{
    struct positions_entry *e = entry_of(p, journal);

    p->changed = p->changed || e->next != next;
    e->next = next;
}

bool positions_here(const struct positions *p, struct slice journal)
{
    const struct positions_entry *e = find(p, journal);

    return e && e->here;
}

void positions_set_here(struct positions *p, struct slice journal, bool here)
{
    struct positions_entry *e = entry_of(p, journal);

    p->changed = p->changed || e->here != here;
    e->here = here;
}

void positions_deliver(struct positions *p, struct slice journal, uint64_t next)
{
    positions_set(p, journal, next);
    positions_touch(p);
}

void positions_touch(struct positions *p)
{
    p->delivered_us = clock_now_us();
    p->changed = true;
}

uint64_t positions_told(const struct positions *p, struct slice journal)
{
    const struct positions_entry *e = find(p, journal);

    return e ? e->told : 0;
}

void positions_tell(struct positions *p, struct slice journal, uint64_t seq)
{
    struct positions_entry *e = entry_of(p, journal);

    p->changed = p->changed || e->told != seq;
    e->told = seq;
}

/* An error may quote any bytes, and be cut within a character: JSON takes neither. */
static void mend_utf8(char *text)
{
    while (*text) {
        size_t n = utf8_length(slice_from_cstr(text));

        if (n == 0) {
            *text = '?';
        }
        text += n > 0 ? n : 1;
    }
}

enum sink_state sink_state_of(const struct err *err)
{
    return err->code == ERR_NONE      ? SINK_STATE_OK
           : err->code == ERR_INVALID ? SINK_STATE_BROKEN
                                      : SINK_STATE_RETRYING;
}

void positions_set_state(struct positions *p, enum sink_state state, const char *error)
{
    char text[sizeof(p->error)];

    (void)snprintf(text, sizeof(text), "%s", error);
    mend_utf8(text);
    p->changed = p->changed || p->state != state || strcmp(p->error, text) != 0;
    p->state = state;
    memcpy(p->error, text, sizeof(text));
}

void positions_count_dead(struct positions *p, uint64_t n)
{
    p->dead += n;
    p->changed = p->changed || n > 0;
}

void positions_count_lost(struct positions *p, uint64_t n)
{
    p->lost += n;
    p->changed = p->changed || n > 0;
}

/* What was told behind the position only: before it no loss can be met again. */
static void add_entry(const struct positions_entry *e, json_t *next, json_t *told, json_t *here)
{
    if (e->next > 0) {
        (void)json_object_set_new(next, e->journal, json_integer((json_int_t)e->next));
    }
    if (e->told >= e->next && e->told > 0) {
        (void)json_object_set_new(told, e->journal, json_integer((json_int_t)e->told));
    }
    if (e->here) {
        (void)json_array_append_new(here, json_string(e->journal));
    }
}

static json_t *as_json(const struct positions *p)
{
    json_t *list = json_object();
    json_t *told = json_object();
    json_t *here = json_array();
    char now[CLOCK_TEXT_SIZE];
    char delivered[CLOCK_TEXT_SIZE];

    for (size_t i = 0; i < p->n; i++) {
        add_entry(&p->list[i], list, told, here);
    }
    clock_format(clock_now_us(), now);
    clock_format(p->delivered_us, delivered);
    return json_pack("{s:s, s:b, s:o, s:o, s:o, s:s, s:s, s:I, s:I, s:s*, s:s, s:s*}", "sink",
                     p->sink, "configured", 1, "positions", list, "told", told, "here", here,
                     "state", states[p->state], "error", p->error, "dead", (json_int_t)p->dead,
                     "lost", (json_int_t)p->lost, "delivered",
                     p->delivered_us > 0 ? delivered : NULL, "time", now, "source", p->source);
}

bool positions_flush(struct positions *p, bool now, struct err *err)
{
    int64_t now_ms = clock_mono_ms();

    if (!p->changed || (!now && now_ms - p->written_ms < WRITE_EVERY_MS && p->written_ms != 0)) {
        return true;
    }

    CLEANUP(fs_closep) int dir_fd = -1;
    CLEANUP(free_json) json_t *j = as_json(p);
    char name[NAME_BYTES];

    file_name(p->sink, name);
    if (!open_folder(p->state_dir, &dir_fd, err) || !write_json(dir_fd, name, j, err)) {
        return err_wrap(err, "positions of %s", p->sink);
    }
    p->changed = false;
    p->written_ms = now_ms;
    return true;
}

/* Is `file` the position file of one of the names, or no position file at all? */
static bool is_wanted(const char *file, const char *const *names, size_t n)
{
    size_t len = strlen(file);

    if (len < sizeof(suffix) || strcmp(file + len - (sizeof(suffix) - 1), suffix) != 0) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        char name[NAME_BYTES];

        file_name(names[i], name);
        if (strcmp(file, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool unconfigure(int dir_fd, const char *file, struct err *err)
{
    CLEANUP(free_json) json_t *j = NULL;

    if (!read_json(dir_fd, file, &j, err)) {
        return false;
    }
    if (!j || json_is_false(json_object_get(j, "configured"))) {
        return true;
    }
    (void)json_object_set_new(j, "configured", json_false());
    return write_json(dir_fd, file, j, err);
}

bool positions_unconfigure(const char *state_dir, const char *const *names, size_t n,
                           struct err *err)
{
    CLEANUP(fs_closep) int dir_fd = -1;
    int list_fd;
    bool done = true;

    if (!open_folder(state_dir, &dir_fd, err)) {
        return false;
    }
    list_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);

    DIR *dir = fdopendir(list_fd);

    if (!dir) {
        return err_errno(err, errno, "%s/%s", state_dir, folder);
    }
    for (struct dirent *e = readdir(dir); done && e; e = readdir(dir)) {
        done = is_wanted(e->d_name, names, n) || unconfigure(dir_fd, e->d_name, err);
    }
    (void)closedir(dir);
    return done;
}

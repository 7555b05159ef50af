#include "sinks/deadletter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/buf.h"
#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/record/payload.h"
#include "collector/record/record.h"

enum {
    LOCK_WAIT_MS = 5000,
    LOCK_PAUSE_MS = 20,
    /* A record as hexadecimal digits, and the rest of its line. */
    LINE_MAX_BYTES = 2 * RECORD_MAX_BYTES + 8192,
    NAME_BYTES = 128,
};
/* What a walk reads into memory; and what a file takes before, so that letters may grow in one. */
static const size_t file_max_bytes = (size_t)512 * 1024 * 1024;
static const size_t full_bytes = (size_t)256 * 1024 * 1024;
static const char folder[] = "deadletters";
static const char suffix[] = ".ndjson";

/* The open folder and the lock in it. */
struct place {
    int dir_fd;
    int lock_fd;
    char file[NAME_BYTES];
};

static void leave(struct place *p)
{
    fs_closep(&p->lock_fd); /* which unlocks */
    fs_closep(&p->dir_fd);
}

static bool open_folder(const char *state_dir, int *ret_fd, struct err *err)
{
    CLEANUP(fs_closep) int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (state_fd < 0) {
        return err_errno(err, errno, "%s", state_dir);
    }
    if (mkdirat(state_fd, folder, 0700) < 0 && errno != EEXIST) {
        return err_errno(err, errno, "%s/%s", state_dir, folder);
    }
    *ret_fd = openat(state_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd >= 0 || err_errno(err, errno, "%s/%s", state_dir, folder);
}

static bool lock(int fd, struct err *err)
{
    int64_t deadline_ms = clock_mono_ms() + LOCK_WAIT_MS;

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return err_errno(err, errno, "lock");
        }
        if (clock_left_ms(deadline_ms) == 0) {
            return err_set(err, ERR_AGAIN, "another process holds the dead letters");
        }
        (void)poll(NULL, 0, LOCK_PAUSE_MS);
    }
    return true;
}

static bool enter(const char *state_dir, const char *sink, struct place *p, struct err *err)
{
    char lock_name[NAME_BYTES];

    *p = (struct place){ .dir_fd = -1, .lock_fd = -1 };
    (void)snprintf(p->file, sizeof(p->file), "%.64s%s", sink, suffix);
    (void)snprintf(lock_name, sizeof(lock_name), "%.64s.lock", sink);
    if (!open_folder(state_dir, &p->dir_fd, err)) {
        return false;
    }
    p->lock_fd = openat(p->dir_fd, lock_name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (p->lock_fd < 0) {
        return err_errno(err, errno, "%s", lock_name);
    }
    return lock(p->lock_fd, err);
}

static bool is_json(struct slice text)
{
    struct json_value v;
    struct err ignored; /* bytes that are no JSON are kept as digits */

    return payload_check(text, &v, &ignored);
}

static void add_hex(struct buf *out, struct slice bytes)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char byte = (unsigned char)bytes.ptr[i];

        buf_add_char(out, digits[byte >> 4]);
        buf_add_char(out, digits[byte & 15]);
    }
}

static void add_line(struct buf *out, const struct deadletter *d)
{
    char time[CLOCK_TEXT_SIZE];
    size_t start = out->len_bytes;

    clock_format(d->time_us, time);
    buf_add(out, SLICE("{\"journal\":"));
    buf_add_json_string(out, d->journal);
    buf_addf(out, ",\"seq\":%llu,", (unsigned long long)d->seq);
    if (d->place.len > 0) {
        buf_add(out, SLICE("\"place\":"));
        buf_add_json_string(out, d->place);
        buf_add_char(out, ',');
    }
    buf_addf(out, "\"type\":\"%s\",\"error\":", record_type_name(d->type));
    buf_add_json_string(out, d->error);
    buf_addf(out, ",\"time\":\"%s\",\"attempts\":%llu,", time, (unsigned long long)d->attempts);

    size_t before = out->len_bytes;
    bool as_it_is = is_json(d->record) && !memchr(d->record.ptr, '\n', d->record.len);

    if (as_it_is) {
        buf_add(out, SLICE("\"record\":"));
        buf_add(out, d->record);
        buf_add_char(out, '}');
        as_it_is = is_json((struct slice){ out->ptr + start, out->len_bytes - start });
    }
    if (!as_it_is) { /* also a record as deep as may be: one level more cannot be read back */
        out->len_bytes = before;
        buf_add(out, SLICE("\"record_hex\":\""));
        add_hex(out, d->record);
        buf_add(out, SLICE("\"}"));
    }
    buf_add_char(out, '\n');
}

static bool text_of(struct json_value v, const char *key, struct arena *a, struct slice *ret)
{
    v = payload_get(v, slice_from_cstr(key));
    return v.kind == JSON_KIND_STRING && payload_string(v.raw, a, ret, NULL);
}

static bool number_of(struct json_value v, const char *key, uint64_t *ret)
{
    int64_t n;

    v = payload_get(v, slice_from_cstr(key));
    if (v.kind != JSON_KIND_NUMBER || !payload_integer(v, &n) || n < 0) {
        return false;
    }
    *ret = (uint64_t)n;
    return true;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool from_hex(struct slice hex, struct arena *a, struct slice *ret)
{
    char *bytes = arena_alloc(a, hex.len / 2 + 1, 1);

    if (!bytes || hex.len % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < hex.len / 2; i++) {
        int high = digit(hex.ptr[2 * i]);
        int low = digit(hex.ptr[2 * i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i] = (char)(high << 4 | low);
    }
    *ret = (struct slice){ .ptr = bytes, .len = hex.len / 2 };
    return true;
}

static bool record_of(struct json_value v, struct arena *a, struct slice *ret)
{
    struct json_value record = payload_get(v, SLICE("record"));
    struct slice hex;

    if (record.kind != JSON_KIND_NONE) {
        *ret = record.raw;
        return true;
    }
    return text_of(v, "record_hex", a, &hex) && from_hex(hex, a, ret);
}

static bool parse_line(struct slice line, struct arena *a, struct deadletter *ret)
{
    struct json_value v;
    struct slice type;
    struct slice time;
    struct err ignored; /* the line is counted as unreadable */

    *ret = (struct deadletter){ 0 };
    if (!payload_check(line, &v, &ignored) || !text_of(v, "journal", a, &ret->journal) ||
        !number_of(v, "seq", &ret->seq) || !text_of(v, "type", a, &type) ||
        !text_of(v, "error", a, &ret->error) || !text_of(v, "time", a, &time) ||
        !clock_parse(time, &ret->time_us) || !number_of(v, "attempts", &ret->attempts)) {
        return false;
    }
    (void)text_of(v, "place", a, &ret->place); /* few have one */
    ret->type = record_type_from(type);
    return record_of(v, a, &ret->record);
}

/* The file from its beginning; or, `from` negative, its last bytes. Empty when there is none. */
static bool read_file(const struct place *p, off_t from, struct buf *out, struct err *err)
{
    CLEANUP(fs_closep) int fd = openat(p->dir_fd, p->file, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return errno == ENOENT || err_errno(err, errno, "%s", p->file);
    }
    if (from < 0 && lseek(fd, from, SEEK_END) < 0 && lseek(fd, 0, SEEK_SET) < 0) {
        return err_errno(err, errno, "%s", p->file);
    }
    for (;;) {
        enum { PIECE_BYTES = 64 * 1024 };
        char *room = buf_reserve(out, PIECE_BYTES);
        ssize_t n;

        if (!room) {
            return err_set(err, ERR_TOO_BIG, "%s: larger than %zu bytes", p->file, out->max_bytes);
        }
        n = read(fd, room, PIECE_BYTES);
        if (n < 0 && errno != EINTR) {
            return err_errno(err, errno, "read %s", p->file);
        }
        if (n == 0) {
            return true;
        }
        out->len_bytes += n > 0 ? (size_t)n : 0;
    }
}

/* The last whole line of some text, and whether the text ends with it. */
static struct slice last_line(struct slice text, bool *ret_whole)
{
    *ret_whole = text.len == 0 || text.ptr[text.len - 1] == '\n';
    while (text.len > 0 && text.ptr[text.len - 1] != '\n') {
        text.len--;
    }
    if (text.len == 0) {
        return text;
    }
    text.len--;

    const char *before = memrchr(text.ptr, '\n', text.len);

    if (before) {
        text.len -= (size_t)(before + 1 - text.ptr);
        text.ptr = before + 1;
    }
    return text;
}

/* The same record; what is none has no sequence, and a place. */
static bool is_same(const struct deadletter *a, const struct deadletter *b)
{
    return a->seq == b->seq && slice_equal(a->journal, b->journal) &&
           slice_equal(a->place, b->place) && slice_equal(a->record, b->record);
}

/* Is d the last letter there? *ret_whole false: a crash left half a line. */
static bool is_last(const struct place *p, const struct deadletter *d, bool *ret_last,
                    bool *ret_whole, struct err *err)
{
    CLEANUP(buf_done) struct buf tail;
    CLEANUP(arena_clear) struct arena arena;
    struct deadletter last;

    buf_init(&tail, 2 * (size_t)LINE_MAX_BYTES + (size_t)128 * 1024);
    arena_init(&arena, LINE_MAX_BYTES);
    if (!read_file(p, -2 * (off_t)LINE_MAX_BYTES, &tail, err)) {
        return false;
    }
    *ret_last =
        parse_line(last_line(buf_slice(&tail), ret_whole), &arena, &last) && is_same(&last, d);
    return true;
}

static bool append_bytes(const struct place *p, struct slice bytes, struct err *err)
{
    CLEANUP(fs_closep)
    int fd = openat(p->dir_fd, p->file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    off_t there = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

    if (there < 0) {
        return err_errno(err, errno, "%s", p->file);
    }
    if ((size_t)there + bytes.len > full_bytes) {
        return err_set(err, ERR_TOO_BIG, "full with %lld bytes: retry or drop what is there",
                       (long long)there);
    }
    if (!fs_write_all(fd, bytes, err)) {
        return err_wrap(err, "%s", p->file);
    }
    if (fsync(fd) < 0 || fsync(p->dir_fd) < 0) {
        return err_errno(err, errno, "fsync %s", p->file);
    }
    return true;
}

void deadletter_name(const struct deadletter *d, struct buf *out)
{
    if (d->place.len > 0) {
        buf_add(out, d->place);
    } else {
        buf_addf(out, "%" SLICE_FMT ":%llu", SLICE_ARG(d->journal), (unsigned long long)d->seq);
    }
}

bool deadletter_append(const char *state_dir, const char *sink, const struct deadletter *d,
                       struct err *err)
{
    CLEANUP(leave) struct place place = { .dir_fd = -1, .lock_fd = -1 };
    CLEANUP(buf_done) struct buf line;
    bool last = false;
    bool whole = true;

    buf_init(&line, LINE_MAX_BYTES);
    if (!enter(state_dir, sink, &place, err) || !is_last(&place, d, &last, &whole, err)) {
        return err_wrap(err, "dead letters of %s", sink);
    }
    if (last) {
        return true;
    }
    if (!whole) {
        buf_add_char(&line, '\n');
    }
    add_line(&line, d);
    if (!buf_ok(&line)) {
        return err_set(err, ERR_TOO_BIG, "dead letters of %s: a line of over %d bytes", sink,
                       LINE_MAX_BYTES);
    }
    return append_bytes(&place, buf_slice(&line), err) || err_wrap(err, "dead letters of %s", sink);
}

/* One line: offered, and what is kept of it goes to `out`, if there is one. */
static void offer(struct slice line, deadletter_on_letter on_letter, void *ctx, struct buf *out,
                  struct deadletter_count *count)
{
    CLEANUP(arena_clear) struct arena arena;
    struct deadletter d;

    arena_init(&arena, LINE_MAX_BYTES);
    if (!parse_line(line, &arena, &d)) {
        count->unreadable++;
        if (out) {
            buf_add(out, line);
            buf_add_char(out, '\n');
        }
        return;
    }
    if (on_letter(ctx, &d) == DEADLETTER_DROP) {
        count->dropped++;
        return;
    }
    count->kept++;
    if (out) {
        add_line(out, &d);
    }
}

/* In the place, which was entered. */
static bool walk(const struct place *place, bool rewrite, deadletter_on_letter on_letter, void *ctx,
                 struct deadletter_count *ret, struct err *err)
{
    CLEANUP(buf_done) struct buf text;
    CLEANUP(buf_done) struct buf kept;
    struct slice line;
    struct slice rest;

    buf_init(&text, file_max_bytes);
    buf_init(&kept, file_max_bytes);
    if (!read_file(place, 0, &text, err)) {
        return false;
    }
    rest = buf_slice(&text);
    while (rest.len > 0) {
        (void)slice_cut(rest, '\n', &line, &rest);
        if (line.len > 0) {
            offer(line, on_letter, ctx, rewrite ? &kept : NULL, ret);
        }
    }
    if (!rewrite || text.len_bytes == 0) {
        return true;
    }
    if (!buf_ok(&kept)) {
        return err_set(err, ERR_TOO_BIG, "%s: too many", place->file);
    }
    return fs_replace(place->dir_fd, place->file, buf_slice(&kept), err);
}

bool deadletter_walk(const char *state_dir, const char *sink, bool rewrite,
                     deadletter_on_letter on_letter, void *ctx, struct deadletter_count *ret,
                     struct err *err)
{
    CLEANUP(leave) struct place place = { .dir_fd = -1, .lock_fd = -1 };

    *ret = (struct deadletter_count){ 0 };
    if (!enter(state_dir, sink, &place, err) || !walk(&place, rewrite, on_letter, ctx, ret, err)) {
        return err_wrap(err, "dead letters of %s", sink);
    }
    return true;
}

bool deadletter_sinks(const char *state_dir, void (*on_sink)(void *ctx, const char *sink),
                      void *ctx, struct err *err)
{
    char path[PATH_MAX];
    DIR *dir;
    struct dirent *entry;

    (void)snprintf(path, sizeof(path), "%s/%s", state_dir, folder);
    dir = opendir(path);
    if (!dir) {
        return errno == ENOENT || err_errno(err, errno, "%s", path);
    }
    for (entry = readdir(dir); entry; entry = readdir(dir)) {
        char *end = strstr(entry->d_name, suffix);

        if (end && end != entry->d_name && end[sizeof(suffix) - 1] == '\0') {
            *end = '\0';
            on_sink(ctx, entry->d_name);
        }
    }
    (void)closedir(dir);
    return true;
}

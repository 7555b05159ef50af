#include "collector/journal/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"

bool folder_path(struct folder_path *ret, struct err *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);

    int n = vsnprintf(ret->text, sizeof(ret->text), fmt, ap);

    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(ret->text)) {
        return err_set(err, ERR_TOO_BIG, "path is longer than %d bytes", FOLDER_PATH_SIZE - 1);
    }
    return true;
}

bool folder_segment_path(const char *dir, uint64_t first_seq, struct folder_path *ret,
                         struct err *err)
{
    char name[FORMAT_NAME_SIZE];

    format_segment_name(first_seq, name);
    return folder_path(ret, err, "%s/%s", dir, name);
}

bool folder_journal_id(const char *dir, struct slice *ret, struct err *err)
{
    struct slice path = slice_from_cstr(dir);

    while (path.len > 0 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }

    size_t at = path.len > ID_TEXT_LEN ? path.len - ID_TEXT_LEN : 0;
    struct slice id = { .ptr = path.ptr + at, .len = path.len - at };

    if (!id_valid(id)) {
        return err_set(err, ERR_INVALID,
                       "%s is not the folder of a journal: its name must be the journal's id", dir);
    }
    *ret = id;
    return true;
}

/* List a folder; one that is not there, or is none, has no names. */
static bool list(const struct journal_io *io, const char *path,
                 bool (*on_name)(void *, const char *), void *arg, struct err *err)
{
    if (io->list(io->ctx, path, on_name, arg) < 0 && errno != ENOENT && errno != ENOTDIR) {
        return err_errno(err, errno, "list %s", path);
    }
    return true;
}

static bool add_segment(void *arg, const char *name)
{
    struct folder_segments *s = arg;
    uint64_t first;

    if (format_segment_seq(name, &first)) {
        s->first = xrealloc(s->first, (s->n + 1) * sizeof(*s->first));
        s->first[s->n++] = first;
    }
    return true;
}

static int compare_seq(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

bool folder_segments(const struct journal_io *io, const char *dir, struct folder_segments *ret,
                     struct err *err)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };

    if (!list(io, dir, add_segment, &s, err)) {
        return false;
    }
    if (s.n > 1) {
        qsort(s.first, s.n, sizeof(*s.first), compare_seq);
    }
    *ret = s;
    s.first = NULL;
    return true;
}

void folder_segments_done(struct folder_segments *s)
{
    free(s->first);
    *s = (struct folder_segments){ 0 };
}

static bool add_journal(void *arg, const char *name)
{
    struct folder_journals *j = arg;

    if (id_valid(slice_from_cstr(name))) {
        j->ids = xrealloc(j->ids, (j->n + 1) * sizeof(*j->ids));
        memcpy(j->ids[j->n++].text, name, ID_TEXT_SIZE);
    }
    return true;
}

static int compare_id(const void *a, const void *b)
{
    return memcmp(a, b, ID_TEXT_LEN);
}

bool folder_journals(const struct journal_io *io, const char *role_dir, struct folder_journals *ret,
                     struct err *err)
{
    CLEANUP(folder_journals_done) struct folder_journals j = { 0 };

    if (!list(io, role_dir, add_journal, &j, err)) {
        return false;
    }
    if (j.n > 1) {
        qsort(j.ids, j.n, sizeof(*j.ids), compare_id);
    }
    *ret = j;
    j.ids = NULL;
    return true;
}

void folder_journals_done(struct folder_journals *j)
{
    free(j->ids);
    *j = (struct folder_journals){ 0 };
}

/*
 * Make one folder, and its name in the one above durable. One that is there may
 * have been made by a predecessor that died before it did that; where we may not
 * look, it was not one of ours.
 */
static bool make_one(const struct journal_io *io, const char *path, const char *above,
                     struct err *err)
{
    bool made = io->mkdir(io->ctx, path) == 0;

    if (!made && errno != EEXIST) {
        return err_errno(err, errno, "make folder %s", path);
    }
    if (io->sync_dir(io->ctx, above) < 0 && (made || errno == EIO)) {
        return err_errno(err, errno, "fsync folder %s", above);
    }
    return true;
}

bool folder_make(const struct journal_io *io, const char *path, struct err *err)
{
    struct folder_path part;
    struct folder_path above;

    if (!folder_path(&part, err, "%s", path) ||
        !folder_path(&above, err, "%s", path[0] == '/' ? "/" : ".")) {
        return false;
    }
    for (char *at = part.text + 1;; at++) {
        char c = *at;

        if (c != '/' && c != '\0') {
            continue;
        }
        *at = '\0';
        if (!make_one(io, part.text, above.text, err) ||
            !folder_path(&above, err, "%s", part.text)) {
            return false;
        }
        *at = c;
        if (c == '\0') {
            return true;
        }
    }
}

struct names {
    const struct journal_io *io;
    const char *path;
    bool unborn_only;
    uint64_t bytes;
};

static bool is_unborn(const char *name)
{
    size_t n = strlen(name);

    return n > 4 && strcmp(name + n - 4, ".new") == 0;
}

static bool remove_file(void *arg, const char *name)
{
    const struct names *names = arg;
    const struct journal_io *io = names->io;
    struct folder_path path;
    struct err err;

    if (!(names->unborn_only && !is_unborn(name)) &&
        folder_path(&path, &err, "%s/%s", names->path, name) &&
        io->unlink(io->ctx, path.text) < 0 && errno == EISDIR) {
        folder_remove(io, path.text);
    }
    return true;
}

/* Failures are passed over: what is left is tried again by the next writer. */
void folder_remove(const struct journal_io *io, const char *path)
{
    struct names names = { .io = io, .path = path };

    (void)!io->list(io->ctx, path, remove_file, &names);
    (void)!io->rmdir(io->ctx, path);
}

void folder_remove_unborn(const struct journal_io *io, const char *path)
{
    struct names names = { .io = io, .path = path, .unborn_only = true };

    (void)!io->list(io->ctx, path, remove_file, &names);
}

static bool add_bytes(void *arg, const char *name)
{
    struct names *names = arg;
    const struct journal_io *io = names->io;
    struct folder_path path;
    struct err err;
    uint64_t first;

    if (!format_segment_seq(name, &first) ||
        !folder_path(&path, &err, "%s/%s", names->path, name)) {
        return true;
    }

    int fd = io->open(io->ctx, path.text, O_RDONLY);

    if (fd >= 0) {
        int64_t size = io->size(io->ctx, fd);

        names->bytes += size > 0 ? (uint64_t)size : 0;
        io->close(io->ctx, fd);
    }
    return true;
}

uint64_t folder_bytes(const struct journal_io *io, const char *role_dir)
{
    CLEANUP(folder_journals_done) struct folder_journals journals = { 0 };
    struct names names = { .io = io };
    struct err err;

    if (!folder_journals(io, role_dir, &journals, &err)) {
        return 0;
    }
    for (size_t i = 0; i < journals.n; i++) {
        struct folder_path dir;

        if (folder_path(&dir, &err, "%s/%s", role_dir, journals.ids[i].text)) {
            names.path = dir.text;
            (void)!io->list(io->ctx, dir.text, add_bytes, &names);
        }
    }
    return names.bytes;
}

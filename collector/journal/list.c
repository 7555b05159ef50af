#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"
#include "collector/journal/folder.h"
#include "collector/journal/missing.h"
#include "collector/journal/reader.h"

/* What has been found so far. */
struct found {
    const struct journal_io *io;
    const char *journals; /* STATE/journals */
    struct journal_info *list;
    size_t n;
    struct err err;
    bool failed;
};

/* Fill what the journal's own files tell; false when there is nothing of it (any more). */
static bool describe(struct found *found, struct journal_info *info)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };
    CLEANUP(mark_close) struct mark mark = { 0 };

    if (!folder_segments(found->io, info->dir, &s, &found->err)) {
        found->failed = true;
        return false;
    }
    if (mark_open(found->io, info->dir, false, &mark, &found->err)) {
        info->durable_seq = mark_durable(&mark);
        info->open = mark_state(&mark) == FORMAT_MARK_OPEN;
    }
    info->first_seq = s.n > 0 ? s.first[0] : missing_before(&mark, &s).from;
    return info->first_seq > 0;
}

/* Other names are not ours: lost+found, where a disk of its own is mounted there. */
static bool is_role(const char *name)
{
    size_t n = strlen(name);

    return n < sizeof(((struct journal_info *)0)->role) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz") == n;
}

static bool add_journals_of(void *arg, const char *role)
{
    CLEANUP(folder_journals_done) struct folder_journals journals = { 0 };
    struct found *found = arg;
    struct folder_path dir;

    if (!is_role(role)) {
        return true;
    }
    if (!folder_path(&dir, &found->err, "%s/%s", found->journals, role) ||
        !folder_journals(found->io, dir.text, &journals, &found->err)) {
        found->failed = true;
        return false;
    }
    for (size_t i = 0; i < journals.n; i++) {
        struct journal_info info = { .id = journals.ids[i] };
        struct folder_path path;

        (void)snprintf(info.role, sizeof(info.role), "%s", role);
        if (!folder_path(&path, &found->err, "%s/%s", dir.text, info.id.text)) {
            found->failed = true;
            return false;
        }
        memcpy(info.dir, path.text, sizeof(info.dir));
        if (describe(found, &info)) {
            found->list = xrealloc(found->list, (found->n + 1) * sizeof(info));
            found->list[found->n++] = info;
        }
    }
    return !found->failed;
}

static int compare_id(const void *a, const void *b)
{
    const struct journal_info *x = a;
    const struct journal_info *y = b;

    return memcmp(x->id.text, y->id.text, ID_TEXT_LEN);
}

bool journal_list(const char *state_dir, bool (*on_journal)(void *ctx, const struct journal_info *),
                  void *ctx, struct err *err)
{
    struct folder_path path;
    struct found found = { .io = &journal_io_real };

    if (!folder_path(&path, err, "%s/journals", state_dir)) {
        return false;
    }
    found.journals = path.text;
    if (found.io->list(found.io->ctx, path.text, add_journals_of, &found) < 0 && errno != ENOENT &&
        !found.failed) {
        found.failed = !err_errno(&found.err, errno, "%s", path.text);
    }
    if (found.n > 1) {
        qsort(found.list, found.n, sizeof(*found.list), compare_id);
    }
    for (size_t i = 0; i < found.n && !found.failed; i++) {
        if (!on_journal(ctx, &found.list[i])) {
            break;
        }
    }
    free(found.list);
    if (found.failed) {
        *err = found.err;
    }
    return !found.failed;
}

uint64_t journal_behind(const struct journal_info *j, uint64_t next_seq)
{
    uint64_t from = next_seq > j->first_seq ? next_seq : j->first_seq;

    return j->durable_seq >= from ? j->durable_seq - from + 1 : 0;
}

bool journal_mark_may_be_late(const char *dir)
{
    CLEANUP(mark_close) struct mark mark = { 0 };
    const struct journal_io *io = &journal_io_real;
    unsigned char machine[IO_ID_BYTES];
    unsigned char boot[IO_ID_BYTES];
    struct format_mark m;
    struct err ignored; /* a mark that cannot be read proves nothing either way */

    if (!mark_open(io, dir, false, &mark, &ignored) || !mark_get(&mark, &m)) {
        return false;
    }
    io->machine(io->ctx, machine, boot);
    return mark_state(&mark) == FORMAT_MARK_OPEN && memcmp(m.boot, boot, sizeof(boot)) != 0;
}

#include "tests/unit/sinks/small_journal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/journal/mark.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/sinks/sink_contract.h"
#include "tests/unit/unit.h"

enum { PATH_SIZE = 4096 + 512 };

struct journal *small_journal_open(const char *role)
{
    const struct journal_options o = {
        .state_dir = fake_folder_path(),
        .role = role,
        .collector = "host-a",
        .durability = JOURNAL_FSYNC,
        .quota_bytes = UINT64_C(1) << 30,
        .segment_bytes = UINT64_C(64) * 1024,
        .checkpoint_ms = INT64_C(3600) * 1000,
        .queue_bytes = 1 << 20,
    };
    struct journal_recovery recovery;
    struct journal *j = NULL;
    struct err err = { 0 };

    if (!journal_open(&o, &j, &recovery, &err)) {
        fail_msg("%s", err.text);
    }
    return j;
}

uint64_t small_journal_fill(struct journal *j, size_t n)
{
    CLEANUP(sink_samples_freep) struct sink_samples *s = sink_samples_new(1, n);
    uint64_t seq = 0;
    struct err err = { 0 };

    for (size_t i = 0; i < n; i++) {
        const struct sink_record *r = &sink_samples_list(s)[i];

        if (!journal_append(j, r->type, r->json, 5000, &seq, &err)) {
            fail_msg("%s", err.text);
        }
    }
    return seq;
}

static bool take_first(void *ctx, const struct journal_info *info)
{
    *(struct journal_info *)ctx = *info;
    return false;
}

struct journal_info small_journal_info(void)
{
    struct journal_info info = { 0 };
    struct err err;

    assert_true(journal_list(fake_folder_path(), take_first, &info, &err));
    return info;
}

/* Where the oldest segment is. */
static void oldest_segment(char ret_path[PATH_SIZE])
{
    struct journal_info info = small_journal_info();
    char oldest[300] = "";
    DIR *d = opendir(info.dir);

    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (strstr(e->d_name, ".seg") && (!*oldest || strcmp(e->d_name, oldest) < 0)) {
            (void)snprintf(oldest, sizeof(oldest), "%s", e->d_name);
        }
    }
    (void)closedir(d);
    (void)snprintf(ret_path, PATH_SIZE, "%s/%s", info.dir, oldest);
}

void small_journal_delete_segment(void)
{
    char path[PATH_SIZE];

    oldest_segment(path);
    assert_int_equal(unlink(path), 0);
}

void small_journal_retire_segment(void)
{
    CLEANUP(mark_close) struct mark mark = { 0 };
    char path[PATH_SIZE];
    struct err err;
    char *name;

    small_journal_delete_segment();
    oldest_segment(path); /* the next one now */
    name = strrchr(path, '/');
    assert_non_null(name);
    *name = '\0';
    assert_true(mark_open(&journal_io_real, path, true, &mark, &err));
    mark_set_retired(&mark, strtoull(name + 1, NULL, 10));
}

void small_journal_damage(int n)
{
    static char bytes[128 * 1024];
    char path[PATH_SIZE];
    char *at = bytes;
    int turned;

    oldest_segment(path);

    FILE *f = fopen(path, "r+e");
    size_t len = f ? fread(bytes, 1, sizeof(bytes), f) : 0;

    for (int i = 0; at && i < n; i++) {
        at = memmem(at + 1, len - (size_t)(at + 1 - bytes), "thread-1", 8);
    }
    if (!at) {
        fail_msg("there are no %d such records in %s", n, path);
        return;
    }
    turned = *at ^ 1;
    assert_int_equal(fseek(f, at - bytes, SEEK_SET), 0);
    assert_int_equal(fputc(turned, f), turned);
    assert_int_equal(fclose(f), 0);
}

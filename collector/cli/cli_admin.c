#include "collector/cli/cli_admin.h"

#include <time.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/cli/cli_retire.h"
#include "collector/record/encode.h"

enum {
    APPEND_MS = 5000,
    JOURNAL_TRIES = 50, /* another command has the journal of the role `cli` for a moment */
    TRY_MS = 100,
};

bool admin_open(const struct config *c, struct journal **ret, struct err *err)
{
    struct journal_recovery recovery;
    const struct timespec pause = { .tv_nsec = TRY_MS * 1000000L };
    const struct journal_options o = {
        .state_dir = c->state,
        .role = "cli",
        .collector = c->collector,
        .quota_bytes = (uint64_t)c->journal.quota_mb << 20,
        .segment_bytes = 1 << 20, /* some records a month */
        .keep_ms = c->journal.keep_hours * 3600 * 1000,
        .checkpoint_ms = 60000,
        .queue_bytes = 1 << 20,
    };

    for (int i = 0; !journal_open(&o, ret, &recovery, err); i++) {
        if (err->code != ERR_AGAIN || i == JOURNAL_TRIES) {
            return err_wrap(err, "the admin record cannot be written");
        }
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

bool admin_record(struct journal *j, const struct config *c, const char *action,
                  struct slice details, struct err *err)
{
    CLEANUP(buf_done) struct buf json;
    const struct id id = id_new();
    char actor[32];
    uint64_t seq;

    (void)snprintf(actor, sizeof(actor), "uid %u", (unsigned)getuid());

    const struct admin a = {
        .head = { .id = id_slice(&id),
                  .collector = slice_from_cstr(c->collector),
                  .time_us = clock_now_us() },
        .action = slice_from_cstr(action),
        .actor = slice_from_cstr(actor),
        .details = details,
    };

    buf_init(&json, RECORD_MAX_BYTES);
    encode_admin(&a, &json);
    return journal_append(j, RECORD_ADMIN, buf_slice(&json), APPEND_MS, &seq, err) ||
           err_wrap(err, "the admin record cannot be written");
}

void admin_close(const struct config *c, struct journal *j)
{
    if (j) {
        retire_shipped(c, j);
        journal_close(j);
    }
}

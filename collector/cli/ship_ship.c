/* ship: deliver the journals of a state folder to every configured sink. */
#include "collector/cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/base/log.h"
#include "collector/cli/cli_pid.h"
#include "collector/cli/cli_retire.h"
#include "collector/cli/ship_fleet.h"
#include "collector/cli/ship_left.h"
#include "collector/cli/ship_load.h"

enum {
    LOOK_EVERY_MS = 50, /* whether a single run is done */
    RETIRE_MS = 10000,
    MIB = 1024 * 1024,
    QUEUE_BYTES = MIB,
    FINISH_MS = 2 * 1000, /* for what collect closed with, before it stops */
};

/* What was asked for, and the signals that end it. */
struct shipping {
    const struct cli *cli;
    bool once;
    bool from_kafka;
    sigset_t set;
};

static void retire(const struct config *c, struct audit *audit)
{
    struct journal *own = audit_journal(audit);

    if (own) {
        retire_shipped(c, own);
    }
}

/* The signal that came; 0 when the fleet has ended by itself. */
static int wait_for_signal(const sigset_t *set, const struct config *c, struct audit *audit,
                           struct fleet *f)
{
    const struct timespec pause = { .tv_nsec = LOOK_EVERY_MS * 1000000L };
    int64_t retired_ms = clock_mono_ms();
    int signal = -1;

    while (signal < 0 && !fleet_is_done(f)) {
        signal = sigtimedwait(set, NULL, &pause);
        if (clock_mono_ms() - retired_ms >= RETIRE_MS) {
            retired_ms = clock_mono_ms();
            retire(c, audit);
        }
    }
    return signal < 0 ? 0 : signal;
}

/* Deliver what is there, for a moment. Another signal ends the moment. */
static void finish(const sigset_t *set, struct fleet *f)
{
    const struct timespec pause = { .tv_nsec = LOOK_EVERY_MS * 1000000L };
    int64_t end_ms = clock_mono_ms() + FINISH_MS;

    fleet_finish(f);
    while (!fleet_is_done(f) && clock_left_ms(end_ms) > 0 && sigtimedwait(set, NULL, &pause) < 0) {
    }
}

/* One ship a state folder: two would race for the same positions. */
static bool take_lock(const char *state_dir, int *ret_fd, struct err *err)
{
    char path[PATH_MAX];

    if (!fs_make_folder(state_dir, FS_STATE_MODE, err)) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "%s/ship.lock", state_dir);

    CLEANUP(fs_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        return err_errno(err, errno, "%s", path);
    }
    if (!fs_lock(fd)) {
        return errno == EWOULDBLOCK
                   ? err_set(err, ERR_AGAIN, "another hooktrail ship works on %s, as process %ld",
                             state_dir, pid_read(state_dir, "ship"))
                   : err_errno(err, errno, "%s", path);
    }
    *ret_fd = TAKE_FD(fd);
    return true;
}

static struct journal_options journal_of(const struct config *c)
{
    return (struct journal_options){
        .state_dir = c->state,
        .role = "ship",
        .collector = c->collector,
        .durability = JOURNAL_FSYNC,
        .when_full = JOURNAL_FULL_DROP_NEW,
        .quota_bytes = (uint64_t)c->journal.quota_mb * MIB,
        .segment_bytes = MIB, /* a few records a day */
        .keep_ms = c->journal.keep_hours * 3600 * 1000,
        .checkpoint_ms = c->journal.checkpoint_s * 1000,
        .queue_bytes = QUEUE_BYTES,
    };
}

static bool unconfigure_others(const struct config *c, struct err *err)
{
    const char *names[CONFIG_LIST_MAX];

    for (size_t i = 0; i < c->n_sinks; i++) {
        names[i] = c->sinks[i].name;
    }
    return positions_unconfigure(c->state, names, c->n_sinks, err);
}

/* What a sink has not got when we stop waits in the journals, for the next ship. */
static void tell_left(const struct config *c)
{
    for (size_t i = 0; i < c->n_sinks; i++) {
        uint64_t left = left_of(c->state, c->sinks[i].name);

        if (left > 0) {
            log_warn("stopped before everything was delivered, the next ship goes on from there",
                     log_str("sink", c->sinks[i].name), log_i64("left", (int64_t)left));
        }
    }
}

/* Ship with one configuration, until a signal or the end. */
static bool ship_with(const struct shipping *s, const struct config *c, int *ret_signal,
                      enum runner_end *ret_end, struct err *err)
{
    const struct journal_options options = journal_of(c);
    struct audit audit;
    struct fleet *fleet = NULL;

    if (!unconfigure_others(c, err)) {
        return false;
    }
    audit_init(&audit, &options);

    bool started = fleet_start(c, s->once, &audit, &fleet, err);

    if (started) {
        log_info("shipping", log_str("state", c->state), log_i64("sinks", (int64_t)c->n_sinks));
        *ret_signal = wait_for_signal(&s->set, c, &audit, fleet);
        if (*ret_signal == SIGTERM || *ret_signal == SIGINT) {
            log_info("stopping, after what is there has been delivered or a sink's time is over");
            finish(&s->set, fleet);
        }
        *ret_end = fleet_stop(fleet);
        tell_left(c);
        retire(c, &audit);
    }
    audit_done(&audit);
    return started;
}

/* Load with one configuration, until a signal or the end. */
static bool load_with(const struct shipping *s, const struct config *c, int *ret_signal,
                      struct err *err)
{
    const struct journal_options options = journal_of(c);
    struct audit audit;
    const struct load what = { c, s->once, &audit, &s->set };

    audit_init(&audit, &options);

    bool loaded = load(&what, ret_signal, err);

    audit_done(&audit);
    return loaded;
}

/* SIGHUP: the file anew; a faulty one is reported, and the old one stays in force. */
static void reload(const struct shipping *s, struct config **c)
{
    struct config *next = cli_config(s->cli);
    struct err err;

    if (!next) {
        log_error("configuration not taken, the old one stays in force");
        return;
    }
    if (s->from_kafka && !load_configured(next, &err)) {
        log_error("configuration not taken, the old one stays in force", log_str("err", err.text));
        config_free(next);
        return;
    }
    if (strcmp(next->state, (*c)->state) != 0) {
        log_error("the state folder cannot change while running, the old configuration stays");
        config_free(next);
        return;
    }
    config_free(*c);
    *c = next;
    log_info("configuration reloaded");
}

static int ship_until_told(const struct shipping *s, struct config **c)
{
    enum runner_end end = RUNNER_STOPPED;
    struct err err;
    int signal = SIGHUP;

    while (signal == SIGHUP) {
        bool worked =
            s->from_kafka ? load_with(s, *c, &signal, &err) : ship_with(s, *c, &signal, &end, &err);

        if (!worked) {
            return cli_fail(s->cli, &err);
        }
        if (signal == SIGHUP) {
            reload(s, c);
        }
    }
    return end == RUNNER_GAVE_UP ? CLI_FAILED : CLI_DONE;
}

/* With the lock, and the pid of who has it. */
static int work(struct shipping *s, struct config **c)
{
    CLEANUP(fs_closep) int lock_fd = -1;
    struct err err;

    cli_block_signals(&s->set); /* before anybody can read our pid */
    if (s->from_kafka && !load_configured(*c, &err)) {
        return cli_fail(s->cli, &err);
    }
    if (!take_lock((*c)->state, &lock_fd, &err) || !pid_write((*c)->state, "ship", &err)) {
        return cli_fail(s->cli, &err);
    }

    int code = ship_until_told(s, c);

    pid_remove((*c)->state, "ship");
    return code;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    struct shipping s = { .cli = cli };
    const char *source = "journals";
    const struct cli_option options[] = {
        { "once", .flag = &s.once },
        { "source", .value = &source },
        { 0 },
    };

    if (!cli_options_only(cli, argc, argv, options)) {
        return CLI_USAGE;
    }

    s.from_kafka = strcmp(source, "kafka") == 0;
    if (!s.from_kafka && strcmp(source, "journals") != 0) {
        return cli_usage(cli, "--source: journals or kafka");
    }

    log_set_role("ship");

    struct config *c = cli_config(cli);

    if (!c) {
        return CLI_USAGE;
    }

    int code = work(&s, &c);

    config_free(c);
    return code;
}

const struct cli_command ship_command = {
    "ship",
    run,
    "[--once] [--source journals|kafka]",
    "Deliver the records of all journals in the state folder to every configured sink, in\n"
    "order, each from where it stands: the outage of one delays no other. Runs until\n"
    "SIGTERM; SIGHUP reads the configuration anew.\n"
    "\n"
    "  --once             end when everything that is there has been delivered\n"
    "  --source journals  where records come from; kafka: the topics that other ships fill,\n"
    "                     into sinks.postgres; several of one group share the work\n"
    "\n"
    "Exit codes: 0 stopped, or delivered; 2 the configuration has faults; 3 another ship\n"
    "works on this state folder, or (--once) a sink did not take everything, a journal cannot\n"
    "be read, or an open transaction of Kafka hides messages.",
};

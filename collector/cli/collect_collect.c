/*
 * hooktrail collect: the role that dispatches and records.
 *
 *     start:  config ─▶ hooks ─▶ journal ─▶ recorder ─▶ in flight of a predecessor ─▶ listeners
 *     run:    the main thread waits for signals, reaps, retires; all else has threads of its own
 *     stop:   listeners (5 s for what runs, then it is cancelled) ─▶ workers ─▶ recorder ─▶ journal
 */
#include "collector/cli/commands.h"
#include "collector/cli/collect_secrets.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "collector/cli/cli_pid.h"
#include "collector/cli/cli_retire.h"
#include "collector/cli/collect_notify.h"
#include "collector/cli/collect_tell.h"
#include "collector/ingress/ingress.h"
#include "collector/ingress/reload.h"
#include "collector/process/process.h"

enum {
    STOP_MS = 5000,         /* for chains that run, before they are cancelled */
    TICK_MS = 1000,         /* reap */
    RETIRE_MS = 10000,      /* retire; TICK_MS while the quota is used up */
    CONNECTIONS = 1024,     /* a listener */
    QUEUE_BYTES = 64 << 20, /* of the journal: a second of a busy machine */
    FOLDER_MODE = 0700,
    MALLOC_ARENAS = 4, /* a heap for each of 64 workers would never shrink */
};

struct role {
    struct config *config; /* as it was started: what lives as long as the role points into it */
    struct config *live;   /* the newest without faults; NULL: still the same */
    struct config_options config_options;
    struct budget budget;
    struct process_options process;
    struct sets sets;
    struct journal *journal;
    struct journal_recovery found; /* by the journal when it was opened */
    struct inflight *inflight;
    struct recorder *recorder;
    struct ingress *ingress;
    struct web *web;
    struct tell told;
    int signals; /* signalfd */
    char work_dir[PATH_MAX];
};

/* ---- Start ------------------------------------------------------------------ */

static bool make_folders(const struct config *c, struct err *err)
{
    static const char *const names[] = { "/journals", "/run", "/scripts", "/keys", "/sinks" };
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", c->state, names[i]);
        if (!fs_make_folder(path, FOLDER_MODE, err)) {
            return false;
        }
    }
    return true;
}

/* Whoever can write to the state folder can put another in the place of what is in it. */
static void warn_of_others(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        return;
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        log_warn("others may write to the state folder, its records prove nothing: chmod go-w",
                 log_str("path", path));
    }
    if (st.st_uid != 0 && st.st_uid != geteuid()) {
        log_warn("the state folder is another user's, who may change the records in it",
                 log_str("path", path), log_i64("uid", (int64_t)st.st_uid));
    }
}

static enum journal_full full_of(const struct config *c)
{
    return c->journal.when_full_drop ? JOURNAL_FULL_DROP_NEW : JOURNAL_FULL_BLOCK;
}

static enum capture capture_of(const struct config *c)
{
    return c->collect.capture_payload ? CAPTURE_PAYLOAD : CAPTURE_KEYS;
}

static bool open_journal(struct role *role, struct err *err)
{
    const struct config *c = role->config;
    const struct journal_recovery *found = &role->found;
    const struct journal_options o = {
        .state_dir = c->state,
        .role = "collect",
        .collector = c->collector,
        .durability = c->collect.durability_write ? JOURNAL_WRITE : JOURNAL_FSYNC,
        .when_full = full_of(c),
        .quota_bytes = (uint64_t)c->journal.quota_mb << 20,
        .segment_bytes = (uint64_t)c->journal.segment_mb << 20,
        .keep_ms = c->journal.keep_hours * 3600 * 1000,
        .checkpoint_ms = c->journal.checkpoint_s * 1000,
        .queue_bytes = QUEUE_BYTES,
    };

    if (!journal_open(&o, &role->journal, &role->found, err)) {
        return false;
    }
    if (found->cut_bytes > 0 || found->damaged > 0 || found->moved) {
        log_warn("journal recovered; a new one was begun where something was cut",
                 log_i64("cut_bytes", (int64_t)found->cut_bytes),
                 log_i64("damaged", (int64_t)found->damaged), log_i64("moved", found->moved));
    }
    return true;
}

static bool open_recorder(struct role *role, struct err *err)
{
    const struct config *c = role->config;

    role->budget.limit_bytes = (size_t)c->collect.output_budget_bytes;
    role->process = (struct process_options){
        .budget = &role->budget,
        .end_left_behind = c->collect.left_behind_end,
    };

    struct recorder_options o = {
        .collector = c->collector,
        .state_dir = c->state,
        .journal = role->journal,
        .record_wait_ms = c->collect.record_wait_ms,
        .capture = capture_of(c),
        .process = &role->process,
    };
    struct recorder *first = recorder_new(&o);

    /* What a predecessor left is recorded before there are slots of our own. */
    if (!inflight_open(c->state, recorder_interrupted, first, &role->inflight, err)) {
        recorder_free(first);
        return false;
    }
    recorder_free(first);
    o.inflight = role->inflight;
    role->recorder = recorder_new(&o);
    return true;
}

/* Trajectories of dispatches; what a predecessor that was killed left there goes. */
static bool make_work_dir(struct role *role, struct err *err)
{
    int n = snprintf(role->work_dir, sizeof(role->work_dir), "%s/work", role->config->state);

    if (n < 0 || (size_t)n >= sizeof(role->work_dir)) {
        return err_set(err, ERR_INVALID, "state: the path is too long");
    }
    fs_remove_tree(role->work_dir);
    return fs_make_folder(role->work_dir, FOLDER_MODE, err);
}

/* That a signing key is gone is for auditors to know: the journal before this one ends unsealed. */
static void record_lost_key(struct role *role)
{
    char details[64];
    struct err err;

    if (role->found.key_lost[0] == '\0') {
        return;
    }
    (void)snprintf(details, sizeof(details), "{\"key_id\":\"%s\"}", role->found.key_lost);
    if (!recorder_admin(role->recorder, "key_lost", "collect", slice_from_cstr(details), &err)) {
        log_error("loss of a key not recorded", log_str("err", err.text));
    }
}

static bool listen_all(struct role *role, struct err *err)
{
    const struct config *c = role->config;
    char tokens[PATH_MAX];
    const struct ingress_options ingress = {
        .collector = c->collector,
        .work_dir = role->work_dir,
        .journal = role->journal,
        .recorder = role->recorder,
        .sets = &role->sets,
        .workers = (size_t)c->collect.workers,
        .queue = (size_t)c->collect.queue,
        .max_body_bytes = (size_t)c->collect.max_body_bytes,
        .record_wait_ms = c->collect.record_wait_ms,
        .deny_unrecorded = c->collect.on_unrecorded_deny,
    };

    (void)snprintf(tokens, sizeof(tokens), "%s/tokens.json", c->state);
    role->ingress = ingress_new(&ingress);

    const struct web_options web = {
        .listen = c->collect.listen,
        .routes = role->ingress->routes,
        .n_routes = INGRESS_ROUTES,
        .tokens_path = tokens,
        .socket_group = c->collect.socket_group,
        .tls_cert = c->collect.tls_cert,
        .tls_key = c->collect.tls_key,
        .hosts = c->collect.hosts,
        .hosts_key = "collect.hosts",
        .max_connections = CONNECTIONS,
    };

    if (!web_start(&web, &role->web, err)) {
        return false;
    }
    atomic_store(&role->ingress->web, role->web);
    return true;
}

/* Signals come by descriptor, to the main thread alone; SIGCHLD stays with `process`. */
static bool take_signals(int *ret_fd, struct err *err)
{
    sigset_t set;

    cli_block_signals(&set);

    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

    if (fd < 0) {
        return err_errno(err, errno, "signalfd");
    }
    *ret_fd = fd;
    return true;
}

/* A connection, and four descriptors for each hook that runs. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool start(struct role *role, struct err *err)
{
    raise_descriptor_limit();
    (void)mallopt(M_ARENA_MAX, MALLOC_ARENAS);
    if (!process_init(err) || !take_signals(&role->signals, err) ||
        !make_folders(role->config, err) || !open_journal(role, err) ||
        !pid_write(role->config->state, "collect", err) || !open_recorder(role, err) ||
        !make_work_dir(role, err)) {
        return false;
    }
    record_lost_key(role);
    reload_record_all(&role->sets, role->recorder);
    return listen_all(role, err);
}

/* Everything in the reverse order; half-started roles too. */
static void stop(struct role *role)
{
    web_stop(role->web, STOP_MS);
    ingress_free(role->ingress);
    recorder_free(role->recorder);
    inflight_close(role->inflight);
    if (role->journal) {
        pid_remove(role->config->state, "collect");
    }
    journal_close(role->journal);
    fs_closep(&role->signals);
}

/* ---- Run -------------------------------------------------------------------- */

/* The signal that has come; 0: none. */
static int next_signal(int fd)
{
    struct signalfd_siginfo info;

    return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

/* How long segments may wait for retirement: what holds submissions back is hurried. */
static int64_t retire_pause_ms(const struct role *role)
{
    struct journal_stats stats;

    journal_stats(role->journal, &stats);
    return stats.full ? TICK_MS : RETIRE_MS;
}

/* A journal that is full is for `status` to show. */
static void tell_whether_stored(struct role *role)
{
    struct journal_stats stats;

    journal_stats(role->journal, &stats);
    if (tell_journal(&role->told, &stats)) {
        tell_write(&role->told, role->config->state, &role->sets);
    }
}

static const struct config *in_force(const struct role *role)
{
    return role->live ? role->live : role->config;
}

/* Take from a configuration what may change while the role runs (ingress/reload.c names the rest).
 */
static void apply(struct role *role, const struct config *c)
{
    const struct journal_limits limits = {
        .when_full = full_of(c),
        .quota_bytes = (uint64_t)c->journal.quota_mb << 20,
        .keep_ms = c->journal.keep_hours * 3600 * 1000,
    };
    const struct recorder_settings settings = {
        .record_wait_ms = c->collect.record_wait_ms,
        .capture = capture_of(c),
        .end_left_behind = c->collect.left_behind_end,
    };

    journal_set_limits(role->journal, &limits);
    recorder_set(role->recorder, &settings);
    ingress_set(role->ingress, c->collect.record_wait_ms, c->collect.on_unrecorded_deny);
}

static void reload(struct role *role)
{
    struct reload done;

    notify_state("RELOADING=1");
    reload_run(&role->config_options, role->config, &role->sets, role->recorder, &done);
    if (done.config) {
        apply(role, done.config);
        config_free(role->live);
        role->live = done.config;
    }
    tell_reload(&role->told, &done);
    tell_write(&role->told, role->config->state, &role->sets);
    notify_state("READY=1");
}

static void wait_for_the_end(struct role *role)
{
    struct pollfd p = { .fd = role->signals, .events = POLLIN };
    int64_t retired_ms = clock_mono_ms();

    for (;;) {
        (void)poll(&p, 1, TICK_MS);
        for (int sig = next_signal(p.fd); sig > 0; sig = next_signal(p.fd)) {
            if (sig != SIGHUP) {
                log_info("stopping", log_i64("signal", sig));
                return;
            }
            reload(role);
            retired_ms -= RETIRE_MS; /* a sink may be gone */
        }
        process_reap();
        tell_whether_stored(role);
        if (clock_mono_ms() - retired_ms >= retire_pause_ms(role)) {
            retired_ms = clock_mono_ms();
            retire_shipped(in_force(role), role->journal);
        }
    }
}

/* Hook files with a fault are refused before anything is touched. */
static bool load_hooks(const struct cli *cli, struct role *role)
{
    CLEANUP(faults_done) struct faults faults;
    size_t changed;

    faults_init(&faults);

    bool ok = reload_hooks(role->config, &role->sets, NULL, &faults, &changed);

    cli_put_faults(cli, &faults);
    return ok;
}

static int run_role(const struct cli *cli, struct role *role)
{
    struct err err;
    int code = CLI_DONE;

    if (!fs_make_folder(role->config->state, FS_STATE_MODE, &err)) {
        return cli_fail(cli, &err);
    }
    warn_of_others(role->config->state);
    if (!load_hooks(cli, role)) {
        return CLI_USAGE;
    }
    if (start(role, &err)) {
        log_info("collecting", log_str("state", role->config->state),
                 log_str("listen", role->config->collect.listen[0]));
        if (sets_count(&role->sets) == 0) {
            log_warn("no contract is configured, every dispatch is refused: set contracts");
        }
        tell_write(&role->told, role->config->state, &role->sets);
        notify_state("READY=1");
        wait_for_the_end(role);
        tell_remove(role->config->state);
        notify_state("STOPPING=1");
    } else {
        code = cli_fail(cli, &err);
    }
    stop(role);
    return code;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    static const struct cli_option none[] = { { 0 } };
    struct role role = {
        .config_options = { .file = cli->config, .state = cli->state },
        .signals = -1,
    };

    if (!cli_options_only(cli, argc, argv, none)) {
        return CLI_USAGE;
    }
    role.config = cli_config(cli);
    if (!role.config) {
        return CLI_USAGE;
    }
    log_set_role("collect");
    collect_forget_secrets(role.config);
    sets_init(&role.sets);

    int code = run_role(cli, &role);

    tell_done(&role.told);
    sets_done(&role.sets);
    config_free(role.live);
    config_free(role.config);
    return code;
}

const struct cli_command collect_command = {
    "collect",
    run,
    "",
    "Dispatch hooks and record what they did: POST /v1/dispatch and /v1/events on the\n"
    "listeners of `collect.listen` (a Unix socket in STATE by default), /metrics, /healthz,\n"
    "/readyz. SIGHUP loads hooks and configuration again; a faulty file leaves what was in\n"
    "force. SIGTERM and SIGINT let running chains finish for 5 seconds, then cancel them.\n"
    "\n"
    "Exit codes: 0 ended by a signal; 2 a fault in the configuration or in a hook file;\n"
    "3 the state folder or a listener cannot be used.",
};

/*
 * run: a supervisor of collect, ship and serve.
 *
 *     start ─▶ running ─(ends)─▶ pause, twice as long each time ─▶ start
 *                  └─ TERM, INT: TERM to collect; when it has ended, TERM to ship,
 *                     which delivers what collect closed with, and to serve
 *
 * Each of the two has GRACE_MS, then it is killed. A second signal kills at once, but
 * not within SAME_MS: Ctrl-C often comes twice, from the terminal and from a script.
 *
 * One thread, one poll on a signalfd. Children are told by the kernel when we die,
 * so that kill -9 of the supervisor leaves nothing behind.
 */
#include "collector/cli/front.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/base/log.h"

enum { COLLECT, SHIP, SERVE, ROLES }; /* in the order of s->children */

enum {
    PAUSE_FIRST_MS = 200,
    PAUSE_MAX_MS = 30 * 1000,
    STEADY_MS = 60 * 1000, /* who ran so long begins again with the shortest pause */
    GRACE_MS = 15 * 1000,  /* a journal settles within 5 s, a batch within 10 */
    SAME_MS = 1000,        /* signals to end that come together are one */
    ANSWER_BYTES = 8192,   /* of `config --get` */
};

struct child {
    const char *role;
    pid_t pid; /* 0: not running */
    int64_t started_ms;
    int64_t start_at_ms; /* while it is not running */
    int64_t pause_ms;
    char program[PATH_MAX];
};

struct supervisor {
    const struct front_globals *globals;
    struct child children[ROLES];
    pid_t self;
    int signals;     /* signalfd */
    sigset_t before; /* mask that children get */
    bool stopping;
    bool told_all; /* ship and serve too, not collect alone */
    int64_t stop_ms;
    int64_t kill_at_ms;
    int code; /* exit code of ours */
};

/* In the child, between fork and exec. */
static void become(const struct supervisor *s, const char *program, const char *const *command)
{
    const char *words[FRONT_WORDS] = { program };
    size_t n = 1;

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != s->self) {
        _exit(FRONT_FAILED); /* it died before we could ask to be told */
    }
    (void)setpgid(0, 0); /* Ctrl-C is for the supervisor, who ends its children in order */
    (void)sigprocmask(SIG_SETMASK, &s->before, NULL);
    for (size_t i = 0; i < s->globals->n; i++) {
        words[n++] = s->globals->words[i];
    }
    for (; *command; command++) {
        words[n++] = *command;
    }
    (void)execv(program, (char *const *)(void *)words);
    (void)fprintf(stderr, "hooktrail: %s: %s\n", program, strerror(errno));
    _exit(FRONT_FAILED);
}

static void start(struct supervisor *s, struct child *c)
{
    const char *const command[] = { c->role, NULL };
    pid_t pid = fork();

    if (pid == 0) {
        become(s, c->program, command);
    }
    c->started_ms = clock_mono_ms();
    if (pid < 0) {
        c->start_at_ms = c->started_ms + PAUSE_MAX_MS;
        log_error("cannot start a role, will retry", log_str("child", c->role),
                  log_str("err", strerror(errno)));
        return;
    }
    c->pid = pid;
}

static void signal_one(const struct child *c, int signal)
{
    if (c->pid > 0) {
        (void)kill(c->pid, signal);
    }
}

static void signal_all(const struct supervisor *s, int signal)
{
    for (size_t i = 0; i < ROLES; i++) {
        signal_one(&s->children[i], signal);
    }
}

static void stop(struct supervisor *s, int code)
{
    if (!s->stopping) {
        s->stopping = true;
        s->code = code;
        s->stop_ms = clock_mono_ms();
        s->kill_at_ms = s->stop_ms + GRACE_MS;
        log_info("stopping: collect stores what it took, then ship delivers, each for a while",
                 log_i64("at_most_ms", GRACE_MS));
        signal_one(&s->children[COLLECT], SIGTERM);
    }
}

/* Once collect has ended, the others may: there is nothing more to come for them. */
static void stop_rest(struct supervisor *s)
{
    if (s->stopping && !s->told_all && s->children[COLLECT].pid == 0) {
        s->told_all = true;
        s->kill_at_ms = clock_mono_ms() + GRACE_MS;
        signal_all(s, SIGTERM);
    }
}

/* Whoever was told to end and has not. */
static void kill_late(struct supervisor *s)
{
    if (s->told_all) {
        signal_all(s, SIGKILL);
    } else {
        signal_one(&s->children[COLLECT], SIGKILL);
    }
    s->kill_at_ms = clock_mono_ms() + GRACE_MS;
}

/* A child ended: say so, and when it comes again. */
static void on_end(struct supervisor *s, struct child *c, int status)
{
    bool exited = WIFEXITED(status);
    int64_t now = clock_mono_ms();

    c->pid = 0;
    if (s->stopping) {
        return;
    }
    if (exited && WEXITSTATUS(status) == FRONT_USAGE) {
        log_error("a role refuses to run; ending all", log_str("child", c->role));
        stop(s, FRONT_USAGE);
        return;
    }
    if (c->pause_ms == 0 || now - c->started_ms >= STEADY_MS) {
        c->pause_ms = PAUSE_FIRST_MS;
    } else {
        c->pause_ms = c->pause_ms * 2 < PAUSE_MAX_MS ? c->pause_ms * 2 : PAUSE_MAX_MS;
    }
    c->start_at_ms = now + c->pause_ms;
    log_warn(
        "a role ended, will be started again", log_str("child", c->role),
        log_i64(exited ? "exit_code" : "signal", exited ? WEXITSTATUS(status) : WTERMSIG(status)),
        log_i64("pause_ms", c->pause_ms));
}

static void reap(struct supervisor *s)
{
    for (size_t i = 0; i < ROLES; i++) {
        struct child *c = &s->children[i];
        int status = 0;

        if (c->pid > 0 && waitpid(c->pid, &status, WNOHANG) == c->pid) {
            on_end(s, c, status);
        }
    }
}

static void on_signal(struct supervisor *s, int signal)
{
    if (signal == SIGHUP) {
        log_info("loading configuration and hooks again");
        signal_all(s, SIGHUP);
    } else if (signal == SIGTERM || signal == SIGINT) {
        if (s->stopping && clock_mono_ms() - s->stop_ms >= SAME_MS) {
            signal_all(s, SIGKILL);
        }
        stop(s, FRONT_DONE);
    }
}

static bool any_runs(const struct supervisor *s)
{
    for (size_t i = 0; i < ROLES; i++) {
        if (s->children[i].pid > 0) {
            return true;
        }
    }
    return false;
}

/* Start who is due. Returns the milliseconds until the next thing to do; -1: nothing. */
static int start_due(struct supervisor *s)
{
    int64_t next = INT64_MAX;
    int64_t now = clock_mono_ms();

    if (s->stopping) {
        if (now >= s->kill_at_ms) {
            kill_late(s);
        }
        return clock_left_ms(s->kill_at_ms);
    }
    for (size_t i = 0; i < ROLES; i++) {
        struct child *c = &s->children[i];

        if (c->pid == 0 && now >= c->start_at_ms) {
            start(s, c);
        }
        if (c->pid == 0 && c->start_at_ms < next) {
            next = c->start_at_ms;
        }
    }
    return next == INT64_MAX ? -1 : clock_left_ms(next);
}

static int supervise(struct supervisor *s)
{
    while (!s->stopping || any_runs(s)) {
        struct pollfd p = { .fd = s->signals, .events = POLLIN };
        struct signalfd_siginfo info;
        int wait_ms = start_due(s);

        if (poll(&p, 1, wait_ms) > 0 && read(s->signals, &info, sizeof(info)) == sizeof(info)) {
            on_signal(s, (int)info.ssi_signo);
        }
        reap(s);
        stop_rest(s);
    }
    return s->code;
}

static bool could_not(const char *what)
{
    (void)fprintf(stderr, "hooktrail run: %s: %s\n", what, strerror(errno));
    return false;
}

/*
 * What `hooktrail config --get KEY` prints, its last newline gone: the front reads no
 * YAML. False after a message, ours or its own.
 */
static bool ask(const struct supervisor *s, const char *key, char ret[ANSWER_BYTES], int *ret_code)
{
    const char *const command[] = { "config", "--get", key, NULL };
    size_t len = 0;
    int status = 0;
    int ends[2];

    *ret_code = FRONT_FAILED;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return could_not("pipe");
    }

    pid_t pid = fork();

    if (pid < 0) {
        (void)could_not("fork");
    } else if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        become(s, s->children[COLLECT].program, command);
    }
    (void)close(ends[1]);
    for (ssize_t n = 1; pid > 0 && n > 0 && len < ANSWER_BYTES - 1;) {
        n = read(ends[0], ret + len, ANSWER_BYTES - 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    (void)close(ends[0]);
    ret[len > 0 && ret[len - 1] == '\n' ? len - 1 : len] = '\0';
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status)) {
        *ret_code = WEXITSTATUS(status);
    }
    return *ret_code == FRONT_DONE;
}

/* The lock is held by the process that the file names. */
static bool runs_already(const char *state, int fd, struct err *err)
{
    char pid[32];
    ssize_t n = read(fd, pid, sizeof(pid));

    return err_set(err, ERR_AGAIN, "already running on %s%s%.*s", state,
                   n > 1 ? ", as process " : "", n > 1 ? (int)n - 1 : 0, pid);
}

/* Two supervisors of one state folder would start every role twice. */
static bool lock(const char *state, int *ret_fd, struct err *err)
{
    char path[ANSWER_BYTES + 32];
    char pid[32];

    (void)snprintf(path, sizeof(path), "%s/run", state);
    if (!fs_make_folder(path, FS_STATE_MODE, err)) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "%s/run/supervisor.lock", state);

    CLEANUP(fs_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0) {
        return err_errno(err, errno, "%s", path);
    }
    if (!fs_lock(fd)) {
        return errno == EWOULDBLOCK ? runs_already(state, fd, err)
                                    : err_errno(err, errno, "%s", path);
    }

    int n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());

    if (ftruncate(fd, 0) < 0 || write(fd, pid, (size_t)n) != n) {
        return err_errno(err, errno, "%s", path);
    }
    *ret_fd = TAKE_FD(fd);
    return true;
}

/* Each line of an answer on a line of its own, below the first. */
static void put_lines(const char *label, const char *lines)
{
    while (*lines != '\0') {
        size_t len = strcspn(lines, "\n");
        bool tcp = strncmp(lines, "tcp:", 4) == 0;

        (void)printf("  %-22s %s%.*s\n", label, tcp ? "http://" : "", (int)len - (tcp ? 4 : 0),
                     lines + (tcp ? 4 : 0));
        lines += len + (lines[len] == '\n' ? 1 : 0);
        label = "";
    }
}

static bool say_hello(const struct supervisor *s, const char *state)
{
    char collect[ANSWER_BYTES];
    char serve[ANSWER_BYTES];
    char sinks[ANSWER_BYTES];
    int code;

    if (!ask(s, "collect.listen", collect, &code) || !ask(s, "serve.listen", serve, &code) ||
        !ask(s, "sinks", sinks, &code)) {
        return false;
    }
    (void)printf("hooktrail " HOOKTRAIL_VERSION " runs collect, ship and serve\n");
    put_lines("dispatches arrive at", collect);
    put_lines("questions go to", serve);
    put_lines("records are sent to", sinks);
    put_lines("everything is kept in", state);
    (void)printf("Look with 'hooktrail status', 'trace' and 'why'. Ctrl-C ends it.\n");
    return fflush(stdout) == 0 || could_not("stdout");
}

/* Signals come as events, not as interruptions. */
static bool take_signals(struct supervisor *s)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, &s->before);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals >= 0;
}

static int fail(const struct err *err)
{
    (void)fprintf(stderr, "hooktrail run: %s\n", err->text);
    return err->code == ERR_AGAIN ? FRONT_USAGE : FRONT_FAILED;
}

int front_run(const struct front_globals *g)
{
    static const char *const roles[ROLES] = {
        [COLLECT] = "collect", [SHIP] = "ship", [SERVE] = "serve"
    };
    struct supervisor s = { .globals = g, .self = getpid(), .signals = -1 };
    char state[ANSWER_BYTES];
    struct err err;
    int code = FRONT_FAILED;

    for (size_t i = 0; i < ROLES; i++) {
        s.children[i].role = roles[i];
        if (!front_program(roles[i], s.children[i].program, PATH_MAX, &err)) {
            return fail(&err);
        }
    }
    if (!take_signals(&s) || !ask(&s, "state", state, &code)) {
        return code;
    }

    CLEANUP(fs_closep) int held = -1;

    if (!lock(state, &held, &err)) {
        return fail(&err);
    }
    if (!say_hello(&s, state)) {
        return FRONT_FAILED;
    }
    log_set_role("run");
    code = supervise(&s);
    (void)close(s.signals);
    return code;
}

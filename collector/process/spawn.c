#include "collector/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/base/mem.h"

static void close_pair(int pair[2])
{
    fs_closep(&pair[0]);
    fs_closep(&pair[1]);
}

/* Index: descriptor in the child. The child's end and ours. */
struct pipes {
    int pair[3][2]; /* as pipe(2): [0] is read, [1] is written */
};

static void pipes_done(struct pipes *p)
{
    for (int i = 0; i < 3; i++) {
        close_pair(p->pair[i]);
    }
}

static bool make_pipes(struct pipes *p, struct err *err)
{
    for (int i = 0; i < 3; i++) {
        if (pipe2(p->pair[i], O_CLOEXEC) != 0) {
            return err_errno(err, errno, "pipe");
        }
    }
    return true;
}

/*
 * Put the input into the pipe. What fits surely (an empty pipe takes PIPE_BUF
 * bytes) is written before there is a child, and costs no turn of the poll loop.
 */
static bool prepare_input(struct pipes *p, struct slice input, struct err *err)
{
    int *in = &p->pair[STDIN_FILENO][1];

    if (input.len <= PIPE_BUF) {
        if (input.len > 0 && !fs_write_all(*in, input, err)) {
            return err_wrap(err, "input");
        }
        fs_closep(in);
        return true;
    }
    if (fcntl(*in, F_SETFL, O_WRONLY | O_NONBLOCK) != 0) {
        return err_errno(err, errno, "fcntl");
    }
    return true;
}

/* envp with the tag in place of one that we inherited; free() the list, the tag is its last. */
static char **with_tag(const char *const *envp, char *tag)
{
    size_t n = 0;
    size_t out = 0;

    while (envp && envp[n]) {
        n++;
    }

    char **all = xcalloc(n + 2, sizeof(*all));

    for (size_t i = 0; i < n; i++) {
        if (strncmp(envp[i], PROCESS_TAG "=", sizeof(PROCESS_TAG)) != 0) {
            memcpy(&all[out++], &envp[i], sizeof(*all));
        }
    }
    all[out] = tag;
    return all;
}

struct setup {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
};

static void setup_done(struct setup *s)
{
    (void)posix_spawn_file_actions_destroy(&s->actions);
    (void)posix_spawnattr_destroy(&s->attr);
}

/* A session of its own, signals and mask as a login shell has them, three descriptors. */
static int setup_fill(struct setup *s, const struct pipes *p, const char *cwd)
{
    sigset_t all;
    sigset_t none;
    int rc = 0;

    memset(&all, 0xff, sizeof(all)); /* sigfillset(3) leaves out those of libc's own */
    (void)sigemptyset(&none);
    rc = rc ? rc : posix_spawnattr_setsigdefault(&s->attr, &all);
    rc = rc ? rc : posix_spawnattr_setsigmask(&s->attr, &none);
    rc = rc ? rc
            : posix_spawnattr_setflags(&s->attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                                     POSIX_SPAWN_SETSIGMASK);
    for (int fd = 0; fd < 3; fd++) {
        int theirs = p->pair[fd][fd == STDIN_FILENO ? 0 : 1];

        rc = rc ? rc : posix_spawn_file_actions_adddup2(&s->actions, theirs, fd);
    }
    /* Ours are close-on-exec, but a library's may not be. */
    rc = rc ? rc : posix_spawn_file_actions_addclosefrom_np(&s->actions, STDERR_FILENO + 1);
    if (cwd) {
        rc = rc ? rc : posix_spawn_file_actions_addchdir_np(&s->actions, cwd);
    }
    return rc;
}

static bool spawn_error(const struct process_spec *spec, int code, struct err *err)
{
    const char *program = spec->argv[0];
    CLEANUP(fs_closep)
    int cwd_fd = spec->cwd ? open(spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    if (spec->cwd && (cwd_fd < 0 || access(spec->cwd, X_OK) != 0)) {
        return err_errno(err, errno, "cannot enter folder %s", spec->cwd);
    }
    if (code == ENOENT && !spec->cwd && strchr(program, '/') && access(program, F_OK) == 0) {
        return err_set(err, ERR_IO, "cannot start %s: its interpreter is missing", program);
    }
    return err_errno(err, code, "cannot start %s", program);
}

/* Processes are stamped with the time since boot, in ticks. */
static uint64_t boot_ticks(void)
{
    struct timespec ts;
    uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * per_second + (uint64_t)ts.tv_nsec / (1000000000 / per_second);
}

/*
 * The start time needs no look into /proc when the clock showed the same tick
 * before and after: in nine of ten cases, as a tick is 10 ms long.
 */
static uint64_t start_ticks(pid_t pid, uint64_t before)
{
    struct proc_stat s;

    if (before == boot_ticks()) {
        return before;
    }
    return proc_stat(pid, &s) ? s.start_ticks : 0;
}

static int run_posix_spawn(const struct process_spec *spec, struct active_run *r,
                           const struct setup *s, char **envp)
{
    char *const *argv;
    pid_t pid;

    /* posix_spawn(3) takes strings that it could change, and does not. */
    memcpy(&argv, &spec->argv, sizeof(argv));
    r->tag = spec->tag;
    orphans_spawn_begin(r);

    int rc = posix_spawnp(&pid, spec->argv[0], &s->actions, &s->attr, argv, envp);

    orphans_spawn_end(r, rc == 0 ? pid : 0);
    return rc;
}

static bool start(const struct process_spec *spec, const struct pipes *p, struct active_run *r,
                  struct err *err)
{
    CLEANUP(setup_done) struct setup s;
    char tag[sizeof(PROCESS_TAG) + PROC_TAG_SIZE];

    (void)posix_spawn_file_actions_init(&s.actions);
    (void)posix_spawnattr_init(&s.attr);

    int rc = setup_fill(&s, p, spec->cwd);

    if (rc != 0) {
        return err_errno(err, rc, "cannot prepare %s", spec->argv[0]);
    }
    (void)snprintf(tag, sizeof(tag), "%s=%s", PROCESS_TAG, spec->tag);

    char **envp = with_tag(spec->envp, tag);

    rc = run_posix_spawn(spec, r, &s, envp);
    free(envp);
    return rc == 0 || spawn_error(spec, rc, err);
}

/* There is a child, and no way to watch it: it must not go on. */
static bool take_back(struct active_run *r, struct err *err)
{
    int code = errno;

    (void)kill(-r->pid, SIGKILL);
    (void)kill(r->pid, SIGKILL);
    while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    orphans_leave(r);
    r->pid = 0;
    return err_errno(err, code, "pidfd_open");
}

bool spawn_child(const struct process_spec *spec, struct active_run *r, struct spawned *ret,
                 struct err *err)
{
    CLEANUP(pipes_done) struct pipes p = { { { -1, -1 }, { -1, -1 }, { -1, -1 } } };
    uint64_t before = spec->on_started ? boot_ticks() : 0;

    *ret = (struct spawned){ .pidfd = -1, .in = -1, .out = -1, .err = -1 };
    if (!make_pipes(&p, err) || !prepare_input(&p, spec->input, err) || !start(spec, &p, r, err)) {
        return false;
    }
    ret->pid = r->pid;
    ret->pidfd = pidfd_open(r->pid, 0);
    if (ret->pidfd < 0) {
        return take_back(r, err);
    }
    if (spec->on_started) {
        ret->start_ticks = start_ticks(r->pid, before);
    }
    ret->in = TAKE_FD(p.pair[STDIN_FILENO][1]);
    ret->out = TAKE_FD(p.pair[STDOUT_FILENO][0]);
    ret->err = TAKE_FD(p.pair[STDERR_FILENO][0]);
    return true;
}

void spawned_close(struct spawned *s)
{
    fs_closep(&s->pidfd);
    fs_closep(&s->in);
    fs_closep(&s->out);
    fs_closep(&s->err);
}

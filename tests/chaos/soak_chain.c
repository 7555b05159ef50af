/*
 * soak_chain: thousands of chains of three hooks, many of them ill-behaved.
 *
 *     soak_chain [CHAINS]        10,000 by default
 *
 * Hooks pass, deny, time out, ignore TERM, flee, never read, write megabytes, die by
 * a signal and cannot be started. At the end there is no zombie, no process, no
 * descriptor more than before, and no more memory than after a tenth of the chains.
 * Exit 0, or 1 with a line for each promise that was broken.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/dispatcher/chain.h"
#include "collector/process/proc.h"
#include "tests/unit/dispatcher/fake_contract.h"

enum {
    CHAINS = 10000,
    THREADS = 4,
    PAYLOAD_BYTES = 200 * 1024, /* more than a pipe holds */
    MEMORY_SLACK_KB = 4096,
    HOOKS_PER_CHAIN = 3,
};

/* One in ten is ill-behaved in a way that takes time; the rest are as quick as most are. */
static const struct fake_step hooks[] = {
    { .name = "true", .script = "/bin/true" },
    { .name = "reads", .script = "cat >/dev/null" },
    { .name = "never reads", .script = "exit 0" },
    { .name = "writes", .script = "head -c 700000 /dev/zero; head -c 700000 /dev/zero >&2" },
    { .name = "floods", .script = "yes" },
    { .name = "dies", .script = "kill -SEGV $$" },
    { .name = "missing", .script = "/no/such/program" },
    { .name = "rejects", .script = "echo no >&2; exit 1" },
    { .name = "leaves", .script = "sleep 30 >/dev/null 2>&1 &" },
    { .name = "flees", .script = "(setsid sh -c 'sleep 30 <&- >&- 2>&- &' &)" },
    { .name = "times out", .script = "sleep 30", .timeout_ms = 20 },
    { .name = "ignores TERM",
      .script = "trap '' TERM; sleep 30 & wait; sleep 30",
      .timeout_ms = 20 },
};
enum { N_HOOKS = sizeof(hooks) / sizeof(hooks[0]), N_QUICK = 10, SLOW_EVERY = 50 };

struct soak {
    _Atomic long next;
    long chains;
    _Atomic uint64_t ran;
    _Atomic uint64_t left_behind;
    struct budget budget;
    struct slice payload;
};

/* The hooks of chain number i: every combination comes, the slow ones seldom. */
static void choose(long i, struct fake_step ret[HOOKS_PER_CHAIN])
{
    for (long h = 0; h < HOOKS_PER_CHAIN; h++) {
        long pick = (i * HOOKS_PER_CHAIN + h * 7 + i / N_QUICK) % N_QUICK;

        if (h == 0 && i % SLOW_EVERY == 0) {
            pick = N_QUICK + i / SLOW_EVERY % (N_HOOKS - N_QUICK);
        }
        ret[h] = hooks[pick];
        ret[h].wave = (size_t)(i % 2 ? 0 : h); /* half of the chains run side by side */
    }
}

static void run_chain_number(struct soak *s, long i)
{
    const struct process_options process = { .budget = &s->budget, .end_left_behind = true };
    const struct chain_options o = { .process = &process };
    struct fake_step steps[HOOKS_PER_CHAIN];
    struct evaluation e;
    struct fake_set set;
    struct dispatch d;
    struct err err;

    choose(i, steps);
    fake_set_init(&set, steps, HOOKS_PER_CHAIN);
    dispatch_init(&d, &set.set, s->payload);
    if (chain_prepare(&d, &err)) {
        chain_run(&d, &o);
        chain_evaluation(&d, &d.chains[0], &e);
        atomic_fetch_add(&s->ran, e.hooks_run);
        for (size_t h = 0; h < e.n_hooks; h++) {
            atomic_fetch_add(&s->left_behind, e.hooks[h].left_behind);
        }
    }
    dispatch_done(&d);
    fake_set_done(&set);
}

static void *work(void *arg)
{
    struct soak *s = arg;

    for (;;) {
        long i = atomic_fetch_add(&s->next, 1);

        if (i >= s->chains) {
            return NULL;
        }
        run_chain_number(s, i);
    }
}

static void run_until(struct soak *s, long chains)
{
    pthread_t threads[THREADS];

    s->chains = chains;
    atomic_store(&s->next, s->next > chains ? chains : s->next);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_create(&threads[i], NULL, work, s);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    atomic_store(&s->next, chains);
}

static long count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    long n = 0;

    while (dir && readdir(dir)) {
        n++;
    }
    if (dir) {
        (void)closedir(dir);
    }
    return n;
}

/* Resident memory, in KiB. */
static long memory_kb(void)
{
    char line[256] = { 0 };
    FILE *f = fopen("/proc/self/statm", "re");
    char *at = line;

    if (f) {
        (void)!fgets(line, sizeof(line), f);
        (void)fclose(f);
    }
    (void)strtol(line, &at, 10);
    return strtol(at, NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Children of ours that are there after a moment, zombies included. */
static size_t children_left(void)
{
    struct pids children = { 0 };
    size_t n = 0;

    for (int i = 0; i < 200; i++) {
        process_reap();
        children.n = 0;
        proc_children(getpid(), &children);
        n = children.n;
        if (n == 0) {
            break;
        }
        (void)usleep(10000);
    }
    pids_done(&children);
    return n;
}

static bool promise(bool kept, const char *what, long before, long after)
{
    (void)printf("%-6s %-24s %8ld %8ld\n", kept ? "kept" : "BROKEN", what, before, after);
    return kept;
}

int main(int argc, char **argv)
{
    long chains = argc > 1 ? strtol(argv[1], NULL, 10) : CHAINS;
    char *payload = calloc(1, PAYLOAD_BYTES);
    struct soak s = { .payload = { .ptr = payload, .len = PAYLOAD_BYTES },
                      .budget = { .limit_bytes = 256 * 1024 * 1024 } };
    int64_t started_ms = clock_mono_ms();
    struct err err;

    if (!payload || !process_init(&err)) {
        return 1;
    }
    run_until(&s, chains / 10);

    long fds = count_fds();
    long memory = memory_kb();

    run_until(&s, chains);

    long left = (long)children_left();
    long memory_after = memory_kb();
    bool kept = promise(left == 0, "processes left", 0, left);

    kept = promise(count_fds() == fds, "descriptors", fds, count_fds()) && kept;
    kept = promise(s.budget.used_bytes == 0, "budget in use", 0, (long)s.budget.used_bytes) && kept;
    kept =
        promise(memory_after <= memory + MEMORY_SLACK_KB, "memory (KiB)", memory, memory_after) &&
        kept;
    (void)printf("%ld chains, %llu hooks, %llu left behind and ended, %lld ms\n", chains,
                 (unsigned long long)s.ran, (unsigned long long)s.left_behind,
                 (long long)(clock_mono_ms() - started_ms));
    free(payload);
    return kept ? 0 : 1;
}

#include "tests/unit/process/fake_hooks.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { MIB = 1024 * 1024, TAG_SIZE = 32, POOL = 1024 };

struct strings {
    const char *argv[4];
    char tag[TAG_SIZE];
};

struct process_spec fake_hook(const char *script)
{
    static const char *const envp[] = { "PATH=/usr/bin:/bin", NULL };
    static struct strings pool[POOL];
    static atomic_uint number;
    unsigned n = atomic_fetch_add(&number, 1);
    struct strings *s = &pool[n % POOL];

    (void)snprintf(s->tag, TAG_SIZE, "test-%d-%u", (int)getpid(), n);
    s->argv[0] = "/bin/sh";
    s->argv[1] = "-c";
    s->argv[2] = script;
    return (struct process_spec){
        .argv = s->argv,
        .envp = envp,
        .tag = s->tag,
        .timeout_ms = 10000,
        .drain_ms = 100,
        .stdout_limit_bytes = MIB,
        .stderr_limit_bytes = MIB,
    };
}

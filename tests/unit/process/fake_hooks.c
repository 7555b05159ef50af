#include "tests/unit/process/fake_hooks.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "collector/base/mem.h"

enum { MIB = 1024 * 1024, TAG_SIZE = 32 };

struct process_spec fake_hook(const char *script)
{
    static atomic_int number;
    static const char *const envp[] = { "PATH=/usr/bin:/bin", NULL };
    const char **argv = xcalloc(4, sizeof(*argv));
    char *tag = xcalloc(1, TAG_SIZE);

    (void)snprintf(tag, TAG_SIZE, "test-%d-%d", (int)getpid(), ++number);
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = script;
    return (struct process_spec){
        .argv = argv,
        .envp = envp,
        .tag = tag,
        .timeout_ms = 10000,
        .drain_ms = 100,
        .stdout_limit_bytes = MIB,
        .stderr_limit_bytes = MIB,
    };
}

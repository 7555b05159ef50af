/* Any bytes as a file of sre hook documents: a set, or faults that each name a line of the file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/dispatcher/hookset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(fs_closep) int fd = memfd_create("hooks", MFD_CLOEXEC);
    struct slice text = { .ptr = (const char *)data, .len = size };
    struct faults faults;
    struct err err;
    char path[64];

    if (fd < 0 || !fs_write_all(fd, text, &err)) {
        abort();
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    faults_init(&faults);

    struct hookset *set =
        hookset_load(contract_find(SLICE("sre")), &(struct hook_source){ .path = path }, &faults);

    if ((set == NULL) != (faults.errors > 0)) {
        abort();
    }
    hookset_unref(set);
    faults_done(&faults);
    return 0;
}

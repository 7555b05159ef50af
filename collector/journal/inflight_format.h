/*
 * inflight_format: every byte of STATE/inflight.
 *
 * A header, then INFLIGHT_SLOTS slots of equal size, in the machine's own byte
 * order: the file is read by nobody but the next collector on this machine. What we
 * wrote survives kill -9 in the page cache. It is not mapped: who cuts the file must
 * not end us, and the next write brings all of it back.
 *
 *     state  0 free ──take──▶ 2 taken ──release──▶ 0
 *
 * Rule: a slot is valid when its state is 2 and `base_crc` fits `base`. Its hook is
 * hooks[which & 1] if that one's crc fits, else the slot tells of no hook. A hook
 * is written into the part that does not count, and then `which` grows by one:
 * a writer that dies in between leaves the old one whole. The CRCs (Castagnoli)
 * are for power that is lost while the kernel writes a page.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "collector/journal/inflight.h"

enum {
    INFLIGHT_MAGIC_SIZE = 16, /* "hooktrail-infl-2" */
    INFLIGHT_BOOT_SIZE = 40,  /* the kernel's boot id as text, filled with NUL */
};
#define INFLIGHT_MAGIC "hooktrail-infl-2"

struct inflight_header {
    char magic[INFLIGHT_MAGIC_SIZE]; /* without a NUL; the last character is the version */
    uint32_t slot_bytes;
    uint32_t slots;
    char boot[INFLIGHT_BOOT_SIZE]; /* processes of another boot are gone, their numbers say nothing
                                    */
    uint64_t device;               /* of the file itself: one that has others is a copy. What */
    uint64_t inode;                /* runs there is another collector's to end and to record */
};

/* What does not change while the slot is taken. */
struct inflight_base {
    struct id dispatch_id;
    struct id evaluation_id;
    uint64_t journal_seq;
    int64_t started_us;
    char contract[16];
    char chain[16];
    char thread_id[INFLIGHT_TEXT];
    char call_id[INFLIGHT_TEXT];
    char agent_name[INFLIGHT_TEXT];
    char event[INFLIGHT_TEXT];
    char tool_name[INFLIGHT_TEXT];
};

/* The hook that runs, or is about to. */
struct inflight_hook {
    char hook_name[INFLIGHT_TEXT];
    uint32_t ordinal;
    int32_t pid;
    uint64_t start_ticks;
    char tag[64];
};

struct inflight_slot {
    _Atomic uint32_t state;
    _Atomic uint32_t which;
    uint32_t base_crc;
    uint32_t hook_crc[2];
    struct inflight_base base;
    struct inflight_hook hooks[2];
};

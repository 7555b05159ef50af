#include "collector/process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/buf.h"
#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/process/process.h"

enum {
    STAT_BYTES = 1024,            /* a line is about 300 */
    CHUNK_BYTES = 16 * 1024,      /* of an environment or a list of children */
    FILE_BYTES = 4 * 1024 * 1024, /* no environment that execve(2) takes is larger */
    STAT_FIELDS_TO_START_TICKS =
        20 /* fields between the name's ')' and field 22, itself included */
};

void pids_add(struct pids *p, pid_t pid)
{
    if (p->n == p->cap) {
        p->cap = p->cap > 0 ? p->cap * 2 : 16;
        p->at = xrealloc(p->at, p->cap * sizeof(*p->at));
    }
    p->at[p->n++] = pid;
}

bool pids_has(const struct pids *p, pid_t pid)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->at[i] == pid) {
            return true;
        }
    }
    return false;
}

void pids_done(struct pids *p)
{
    free(p->at);
    *p = (struct pids){ 0 };
}

/*
 * "PID (NAME) S PPID PGRP SESSION …". The name is the process's own and may hold
 * blanks and parentheses, so the fields are counted from its last ')'.
 */
static bool parse_stat(char *line, struct proc_stat *ret)
{
    char *at = strrchr(line, ')');
    unsigned long long fields[STAT_FIELDS_TO_START_TICKS] = { 0 };

    if (!at || at[1] != ' ') {
        return false;
    }
    ret->state = at[2];
    at += 3;
    for (size_t i = 1; i < STAT_FIELDS_TO_START_TICKS; i++) {
        char *end;

        fields[i] = strtoull(at, &end, 10);
        if (end == at) {
            return false;
        }
        at = end;
    }
    ret->ppid = (pid_t)fields[1];
    ret->group = (pid_t)fields[2];
    ret->session = (pid_t)fields[3];
    ret->start_ticks = fields[STAT_FIELDS_TO_START_TICKS - 1];
    return true;
}

bool proc_stat(pid_t pid, struct proc_stat *ret)
{
    char path[64];
    char line[STAT_BYTES];

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);

    CLEANUP(fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return false;
    }

    ssize_t n = read(fd, line, sizeof(line) - 1);

    if (n <= 0) {
        return false;
    }
    line[n] = '\0';
    ret->pid = pid;
    return parse_stat(line, ret);
}

bool proc_alive(const struct proc_stat *s)
{
    return s->state != 'Z' && s->state != 'X';
}

/* All of a file whose size is known only at its end. False when it cannot be read. */
static bool read_file(const char *path, struct buf *ret)
{
    CLEANUP(fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return false;
    }
    for (;;) {
        char *at = buf_reserve(ret, CHUNK_BYTES);
        ssize_t n = at ? read(fd, at, CHUNK_BYTES) : -1;

        if (n <= 0) {
            return n == 0;
        }
        ret->len_bytes += (size_t)n;
    }
}

bool proc_slack(pid_t pid, uint64_t *ret_ns)
{
    char path[64];
    char text[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/timerslack_ns", (int)pid);

    CLEANUP(fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

    while (n > 0 && text[n - 1] == '\n') {
        n--;
    }
    return n > 0 && slice_to_u64((struct slice){ .ptr = text, .len = (size_t)n }, ret_ns);
}

enum proc_tag_result proc_tag(pid_t pid, char ret_tag[PROC_TAG_SIZE])
{
    static const char key[] = PROCESS_TAG "=";
    char path[64];
    struct slice rest;
    struct slice entry;
    CLEANUP(buf_done) struct buf env;

    buf_init(&env, FILE_BYTES);
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (!read_file(path, &env)) {
        return errno == EACCES || errno == EPERM ? PROC_TAG_NONE : PROC_TAG_UNKNOWN;
    }
    if (env.len_bytes == 0) {
        return PROC_TAG_UNKNOWN;
    }
    rest = buf_slice(&env);
    while (rest.len > 0) {
        (void)slice_cut(rest, '\0', &entry, &rest);
        if (slice_starts_with(entry, SLICE(PROCESS_TAG "="))) {
            (void)snprintf(ret_tag, PROC_TAG_SIZE, "%" SLICE_FMT, (int)(entry.len - strlen(key)),
                           entry.ptr + strlen(key));
            return PROC_TAG_FOUND;
        }
    }
    return PROC_TAG_NONE;
}

void proc_parse_pids(const char *text, size_t len, struct pids *ret)
{
    pid_t pid = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            pid = pid * 10 + (text[i] - '0');
        } else if (pid > 0) {
            pids_add(ret, pid);
            pid = 0;
        }
    }
    if (pid > 0) {
        pids_add(ret, pid);
    }
}

static void closedirp(DIR **dir)
{
    if (*dir) {
        (void)closedir(*dir);
    }
}

/* The entries of a folder that are numbers. False when it cannot be read. */
static bool list_numbers(const char *path, struct pids *ret)
{
    CLEANUP(closedirp) DIR *dir = opendir(path);

    if (!dir) {
        return false;
    }
    for (;;) {
        const struct dirent *e = readdir(dir);

        if (!e) {
            return true;
        }
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9') {
            proc_parse_pids(e->d_name, strlen(e->d_name), ret);
        }
    }
}

void proc_all(struct pids *ret)
{
    (void)list_numbers("/proc", ret); /* without /proc nothing can be found */
}

void proc_children_scan(pid_t pid, struct pids *ret)
{
    CLEANUP(pids_done) struct pids all = { 0 };
    struct proc_stat s;

    proc_all(&all);
    for (size_t i = 0; i < all.n; i++) {
        if (proc_stat(all.at[i], &s) && s.ppid == pid) {
            pids_add(ret, s.pid);
        }
    }
}

void proc_children(pid_t pid, struct pids *ret)
{
    CLEANUP(pids_done) struct pids tasks = { 0 };
    CLEANUP(buf_done) struct buf text;
    char path[64];

    buf_init(&text, FILE_BYTES);
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    if (!list_numbers(path, &tasks)) {
        return;
    }
    for (size_t i = 0; i < tasks.n; i++) {
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tasks.at[i]);
        buf_clear(&text);
        errno = 0;
        if (read_file(path, &text)) {
            proc_parse_pids(text.ptr, text.len_bytes, ret);
        } else if (errno == ENOENT && access("/proc/self/task", F_OK) == 0 &&
                   access("/proc/thread-self/children", F_OK) != 0) {
            proc_children_scan(pid, ret);
            return;
        }
    }
}

/* sre_script: a hook's script becomes a file, because an interpreter wants one. */
#include "collector/contract/sre.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/contract/text.h"

#define BASH_LINE "#!/bin/bash"
#define PYTHON_LINE "#!/usr/bin/env python3"

static struct slice first_line(struct slice script)
{
    struct slice line;
    struct slice rest;

    (void)slice_cut(script, '\n', &line, &rest);
    return text_trim(line);
}

/* True when the line is the word, alone or with options behind a blank. */
static bool is_line(struct slice line, struct slice word)
{
    return slice_starts_with(line, word) &&
           (line.len == word.len || line.ptr[word.len] == ' ' || line.ptr[word.len] == '\t');
}

enum sre_interpreter sre_script_interpreter(struct slice script)
{
    struct slice line = first_line(script);

    if (script.len < 2 || script.ptr[0] != '#') {
        return SRE_NO_INTERPRETER;
    }
    if (is_line(line, SLICE(BASH_LINE))) {
        return SRE_BASH;
    }
    return is_line(line, SLICE(PYTHON_LINE)) ? SRE_PYTHON : SRE_NO_INTERPRETER;
}

/* True when the file holds exactly these bytes: nobody has touched it since. */
static bool is_stored(int dir_fd, const char *name, struct slice script)
{
    CLEANUP(fs_closep) int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || (size_t)st.st_size != script.len) {
        return false;
    }

    char *bytes = xcalloc(script.len + 1, 1);
    bool same = read(fd, bytes, script.len) == (ssize_t)script.len &&
                memcmp(bytes, script.ptr, script.len) == 0;

    free(bytes);
    return same;
}

static bool store(const char *dir, const char *name, struct slice script, struct err *err)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
        return err_errno(err, errno, "make folder %s", dir);
    }

    CLEANUP(fs_closep) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir_fd < 0) {
        return err_errno(err, errno, "open folder %s", dir);
    }
    return is_stored(dir_fd, name, script) || fs_replace(dir_fd, name, script, err);
}

/* What stands behind the interpreter's name, as the kernel would pass it: one word. */
static const char *option_of(struct slice script, struct arena *a)
{
    struct slice line = first_line(script);
    struct slice option = { .ptr = line.ptr + strlen(BASH_LINE),
                            .len = line.len - strlen(BASH_LINE) };
    struct slice trimmed = text_trim(option);
    char *word = arena_alloc(a, trimmed.len + 1, 1);

    if (word && trimmed.len > 0) {
        memcpy(word, trimmed.ptr, trimmed.len);
    }
    return word;
}

static bool words(struct slice script, const char *path, struct arena *a,
                  const char *const **ret_argv)
{
    const char **argv = arena_alloc(a, 4, sizeof(*argv));

    if (!argv) {
        return false;
    }
    *ret_argv = argv;
    if (sre_script_interpreter(script) == SRE_PYTHON) {
        argv[0] = "/usr/bin/env";
        argv[1] = "python3";
        argv[2] = path;
        return true;
    }

    const char *option = option_of(script, a);

    argv[0] = "/bin/bash";
    argv[1] = option && *option ? option : path;
    argv[2] = option && *option ? path : NULL;
    return option != NULL;
}

bool sre_script_store(const char *dir, struct slice script, struct arena *a,
                      const char *const **ret_argv, struct err *err)
{
    struct digest digest = digest_of(script);
    char name[DIGEST_HEX_SIZE];
    size_t size = strlen(dir) + 1 + sizeof(name);
    char *path = arena_alloc(a, size, 1);

    digest_hex(&digest, name);
    if (!path || !words(script, path, a, ret_argv)) {
        return err_set(err, ERR_TOO_BIG, "no room for the path of a script");
    }
    (void)snprintf(path, size, "%s/%s", dir, name);
    return store(dir, name, script, err);
}

/*
 * folder: which journals a role has, and which segments a journal has.
 */
#pragma once

#include "collector/base/err.h"
#include "collector/base/id.h"
#include "collector/journal/format.h"
#include "collector/journal/io.h"

enum { FOLDER_PATH_SIZE = 4096 };

struct folder_path {
    char text[FOLDER_PATH_SIZE];
};

/* Build a path. Errors: ERR_TOO_BIG. */
bool folder_path(struct folder_path *ret, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4)
    MUST_CHECK;

/* The segment of `dir` that begins with first_seq. */
bool folder_segment_path(const char *dir, uint64_t first_seq, struct folder_path *ret,
                         struct err *err) MUST_CHECK;

/* A journal's id, which is the name of its folder; into `dir`. Errors: ERR_INVALID. */
bool folder_journal_id(const char *dir, struct slice *ret, struct err *err) MUST_CHECK;

/* First sequences of the segments of a journal, rising. */
struct folder_segments {
    uint64_t *first; /* owned */
    size_t n;
};

/* List them; none where there is no folder. Release with folder_segments_done(). */
bool folder_segments(const struct journal_io *io, const char *dir, struct folder_segments *ret,
                     struct err *err) MUST_CHECK;
void folder_segments_done(struct folder_segments *s);

/* Ids of the journals in STATE/journals/ROLE, rising. */
struct folder_journals {
    struct id *ids; /* owned */
    size_t n;
};

/* List them; none where there is no folder. Release with folder_journals_done(). */
bool folder_journals(const struct journal_io *io, const char *role_dir, struct folder_journals *ret,
                     struct err *err) MUST_CHECK;
void folder_journals_done(struct folder_journals *j);

/* Make a folder, and all above it that are not there; durable. */
bool folder_make(const struct journal_io *io, const char *path, struct err *err) MUST_CHECK;

/* Remove a folder and the files in it; what fails is left for the next time. */
void folder_remove(const struct journal_io *io, const char *path);

/* Remove what a predecessor began and did not give a name. */
void folder_remove_unborn(const struct journal_io *io, const char *path);

/* The sum of the sizes of all segments in STATE/journals/ROLE. */
uint64_t folder_bytes(const struct journal_io *io, const char *role_dir);

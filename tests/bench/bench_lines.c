/*
 * bench_lines: the records of a state folder's journal, a line each, for programs that
 * read lines.
 *
 *     bench_lines STATE > FILE
 */
#include <stdio.h>

#include "tests/bench/events.h"

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fputs("usage: bench_lines STATE\n", stderr);
        return 2;
    }

    CLEANUP(events_freep) struct events *events = events_read(argv[1]);

    for (size_t i = 0; i < events->n; i++) {
        struct slice line = events->list[i].json;

        if (fwrite(line.ptr, 1, line.len, stdout) != line.len || putchar('\n') == EOF) {
            return 3;
        }
    }
    return fflush(stdout) == 0 ? 0 : 3;
}

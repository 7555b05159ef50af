#include "collector/cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/utf8.h"

int cli_usage(const struct cli *cli, const char *fmt, ...)
{
    char text[ERR_TEXT_SIZE];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "hooktrail %s: ", cli->command);
    cli_put(stderr, slice_from_cstr(text), false);
    (void)fprintf(stderr, "; see 'hooktrail help %s'\n", cli->command);
    return CLI_USAGE;
}

int cli_fail(const struct cli *cli, const struct err *err)
{
    (void)fprintf(stderr, "hooktrail %s: ", cli->command);
    cli_put(stderr, slice_from_cstr(err->text), false);
    (void)fputc('\n', stderr);
    switch (err->code) {
    case ERR_INVALID:
    case ERR_TOO_BIG:
        return CLI_USAGE;
    case ERR_NOT_FOUND:
        return CLI_NEGATIVE;
    case ERR_NONE:
    case ERR_AGAIN:
    case ERR_IO:
    case ERR_CORRUPT:
        return CLI_FAILED;
    }
    return CLI_FAILED;
}

void cli_put_faults(const struct cli *cli, const struct faults *faults)
{
    for (const struct fault *f = faults->first; f; f = f->next) {
        bool error = f->level == FAULT_ERROR;

        cli_put(stderr, slice_from_cstr(f->file), false);
        (void)fputc(':', stderr);
        if (f->line > 0) {
            (void)fprintf(stderr, "%zu:", f->line);
        }
        (void)fprintf(stderr, " %s%s:%s ",
                      cli->color_err ? paint_escape(error ? COLOR_RED : COLOR_YELLOW) : "",
                      error ? "error" : "warning", cli->color_err ? PAINT_END : "");
        cli_put(stderr, slice_from_cstr(f->key), false);
        (void)fputs(f->key ? ": " : "", stderr);
        cli_put(stderr, slice_from_cstr(f->text), false);
        (void)fputc('\n', stderr);
    }
}

const char *cli_color(const struct cli *cli, enum color color)
{
    return cli->color ? paint_escape(color) : "";
}

const char *cli_plain(const struct cli *cli)
{
    return cli->color ? PAINT_END : "";
}

void cli_put(FILE *out, struct slice text, bool keep_lines)
{
    while (text.len > 0) {
        size_t n = utf8_length(text);
        struct slice c = { .ptr = text.ptr, .len = n > 0 ? n : 1 };
        bool line = c.ptr[0] == '\n' || c.ptr[0] == '\t';

        if (n == 0 || (utf8_is_control(c) && !(line && keep_lines))) {
            (void)fprintf(out, "\\x%02x", (unsigned char)c.ptr[c.len - 1]);
        } else {
            (void)fwrite(c.ptr, 1, c.len, out);
        }
        text.ptr += c.len;
        text.len -= c.len;
    }
}

int cli_print_json(const struct cli *cli, const json_t *value)
{
    size_t flags = JSON_ENCODE_ANY | (cli->terminal ? JSON_INDENT(2) : JSON_COMPACT);

    if (json_dumpf(value, stdout, flags) != 0 || fputc('\n', stdout) == EOF) {
        (void)fprintf(stderr, "hooktrail %s: cannot write the result\n", cli->command);
        return CLI_FAILED;
    }
    return CLI_DONE;
}

bool cli_flush(const struct cli *cli)
{
    bool ok = fflush(stdout) == 0 && ferror(stdout) == 0;

    if (!ok && errno != EPIPE) {
        (void)fprintf(stderr, "hooktrail %s: stdout: %s\n", cli->command, strerror(errno));
    }
    return ok;
}

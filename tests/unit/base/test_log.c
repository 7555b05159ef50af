#include "collector/base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

enum { LINE_BYTES = 1024 };

/* What `log` writes to stderr, which is a pipe meanwhile. */
static void capture(void (*log)(void), char *ret, size_t size)
{
    int ends[2];
    int before = dup(STDERR_FILENO);

    assert_int_equal(pipe(ends), 0);
    (void)dup2(ends[1], STDERR_FILENO);
    log();
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    (void)close(ends[1]);

    ssize_t n = read(ends[0], ret, size - 1);

    (void)close(ends[0]);
    ret[n > 0 ? n : 0] = '\0';
}

static void log_pairs(void)
{
    log_warn("sink not opened", log_str("err", "a \"b\"\nlevel=error"), log_i64("n", -3));
}

/* As systemd does for a service: it names the stream, and the service inherits it. */
static void log_to_the_journal(void)
{
    char stream[64];
    struct stat st;

    (void)fstat(STDERR_FILENO, &st);
    (void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    (void)setenv("JOURNAL_STREAM", stream, 1);
    log_set_role("ship");
    log_pairs();
    (void)unsetenv("JOURNAL_STREAM");
}

static void log_beside_the_journal(void)
{
    (void)setenv("JOURNAL_STREAM", "1:1", 1);
    log_set_role("serve");
    log_pairs();
    (void)unsetenv("JOURNAL_STREAM");
}

static const char pairs[] = "level=warn msg=\"sink not opened\" "
                            "err=\"a \\\"b\\\"\\x0alevel=error\" n=-3\n";

static void a_command_tells_neither_time_nor_role(void **state)
{
    (void)state;
    char line[LINE_BYTES];

    capture(log_pairs, line, sizeof(line));

    assert_string_equal(line, pairs);
}

static void a_role_tells_time_and_role_first(void **state)
{
    (void)state;
    char line[LINE_BYTES];
    size_t time_chars = sizeof("time=2026-11-30T14:00:00.000001Z ") - 1;

    capture(log_beside_the_journal, line, sizeof(line));

    assert_memory_equal(line, "time=2", 6);
    assert_memory_equal(line + time_chars - 2, "Z role=serve level=warn ", 24);
    assert_string_equal(strstr(line, "level="), pairs);
}

static void systemd_has_the_time_already(void **state)
{
    (void)state;
    char line[LINE_BYTES];

    capture(log_to_the_journal, line, sizeof(line));

    assert_memory_equal(line, "role=ship level=warn ", 21);
}

static void what_is_below_the_least_level_is_not_written(void **state)
{
    (void)state;
    char line[LINE_BYTES];

    log_set_level(LOG_ERROR);
    capture(log_pairs, line, sizeof(line));
    log_set_level(LOG_INFO);

    assert_string_equal(line, "");
}

static void log_too_much(void)
{
    char text[LOG_VALUE_BYTES + 2];

    memset(text, 'z', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_warn("long", log_str("text", text), log_i64("n", 1));
}

static void a_long_value_is_cut_and_says_so(void **state)
{
    (void)state;
    char line[2 * LOG_VALUE_BYTES];

    capture(log_too_much, line, sizeof(line));

    assert_string_equal(strchr(line, '\xe2'), "…\" n=1\n");
    assert_int_equal(strspn(strchr(line, 'z'), "z"), LOG_VALUE_BYTES);
}

/* A datagram has the bytes of one write. */
static void a_line_is_written_at_once(void **state)
{
    (void)state;
    char line[LINE_BYTES];
    int ends[2];
    int before = dup(STDERR_FILENO);

    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    (void)dup2(ends[1], STDERR_FILENO);
    log_pairs();
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);

    ssize_t n = read(ends[0], line, sizeof(line));

    assert_int_equal(line[n > 0 ? n - 1 : 0], '\n');
    assert_int_equal(recv(ends[0], line, sizeof(line), MSG_DONTWAIT), -1);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_tells_neither_time_nor_role),
        cmocka_unit_test(a_role_tells_time_and_role_first),
        cmocka_unit_test(systemd_has_the_time_already),
        cmocka_unit_test(what_is_below_the_least_level_is_not_written),
        cmocka_unit_test(a_long_value_is_cut_and_says_so),
        cmocka_unit_test(a_line_is_written_at_once),
    };

    return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}

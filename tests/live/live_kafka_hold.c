/*
 * A transaction of somebody else, left open:
 *
 *     live_kafka_hold BOOTSTRAP TOPIC        with one message in partition 0
 *     live_kafka_hold BOOTSTRAP TOPIC NAME   of this transactional id; with what comes
 *                                            by standard input, a line a message:
 *                                            PARTITION JOURNAL SEQ VALUE, between tabs
 *
 * Prints "open" when a message has been taken. A line "commit" ends it so; else it is
 * aborted at the end of standard input.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>

enum { TIMEOUT_MS = 20000 };

static rd_kafka_t *connect_to(const char *bootstrap, const char *name)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[200];

    if (rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof(text)) ||
        rd_kafka_conf_set(conf, "transactional.id", name, text, sizeof(text))) {
        return NULL;
    }
    return rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
}

static int failed(rd_kafka_error_t *error)
{
    (void)fprintf(stderr, "%s\n", rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return 3;
}

static bool produce(rd_kafka_t *rk, const char *topic, int partition, char *const *texts)
{
    char key[] = "1";

    return rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, 1),
                             RD_KAFKA_V_HEADER("journal", texts[0], -1),
                             RD_KAFKA_V_HEADER("seq", texts[1], -1),
                             RD_KAFKA_V_VALUE(texts[2], strlen(texts[2])),
                             RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR &&
           rd_kafka_flush(rk, TIMEOUT_MS) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* A line, which is cut in place: wait until the broker has its message. */
static bool send_line(rd_kafka_t *rk, const char *topic, char *line)
{
    char *rest = line;
    int partition = (int)strtol(strsep(&rest, "\t"), NULL, 10);
    char *journal = strsep(&rest, "\t");
    char *seq = strsep(&rest, "\t");

    if (!rest || !produce(rk, topic, partition, (char *const[]){ journal, seq, rest })) {
        return false;
    }
    (void)puts("open");
    (void)fflush(stdout);
    return true;
}

/* Until the end of standard input, or "commit". */
static bool send_lines(rd_kafka_t *rk, const char *topic, bool *ret_commit)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len = 0;
    bool sent = true;

    *ret_commit = false;
    while (sent && !*ret_commit && (len = getline(&line, &size, stdin)) > 0) {
        line[len - 1] = '\0';
        *ret_commit = strcmp(line, "commit") == 0;
        sent = *ret_commit || send_line(rk, topic, line);
    }
    free(line);
    return sent;
}

static int hold(rd_kafka_t *rk, const char *topic, bool from_input)
{
    char one[] = "0\t1\t1\t1";
    bool commit;
    rd_kafka_error_t *error = rd_kafka_init_transactions(rk, TIMEOUT_MS);

    error = error ? error : rd_kafka_begin_transaction(rk);
    if (error) {
        return failed(error);
    }
    if ((!from_input && !send_line(rk, topic, one)) || !send_lines(rk, topic, &commit)) {
        return 3;
    }
    error = commit ? rd_kafka_commit_transaction(rk, TIMEOUT_MS)
                   : rd_kafka_abort_transaction(rk, TIMEOUT_MS);
    return error ? failed(error) : 0;
}

int main(int argc, char **argv)
{
    bool from_input = argc == 4;
    rd_kafka_t *rk =
        argc == 3 || from_input ? connect_to(argv[1], from_input ? argv[3] : "hold") : NULL;

    if (!rk) {
        (void)fputs("usage: live_kafka_hold BOOTSTRAP TOPIC [NAME]\n", stderr);
        return 2;
    }

    int code = hold(rk, argv[2], from_input);

    rd_kafka_destroy(rk);
    return code;
}

/*
 * A transaction of somebody else, left open: live_kafka_hold BOOTSTRAP TOPIC
 *
 * Sends one message to partition 0 in it, prints "open", and aborts it at the end of
 * standard input.
 */
#include <stdio.h>

#include <librdkafka/rdkafka.h>

enum { TIMEOUT_MS = 20000 };

static rd_kafka_t *connect_to(const char *bootstrap)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[200];

    if (rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof(text)) ||
        rd_kafka_conf_set(conf, "transactional.id", "hold", text, sizeof(text))) {
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

static int hold(rd_kafka_t *rk, const char *topic)
{
    char text[] = "1";
    rd_kafka_error_t *error = rd_kafka_init_transactions(rk, TIMEOUT_MS);

    error = error ? error : rd_kafka_begin_transaction(rk);
    if (error) {
        return failed(error);
    }
    if (rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(text, 1),
                          RD_KAFKA_V_VALUE(text, 1), RD_KAFKA_V_END) ||
        rd_kafka_flush(rk, TIMEOUT_MS)) {
        return 3;
    }
    (void)puts("open");
    (void)fflush(stdout);
    while (getchar() != EOF) {
    }
    error = rd_kafka_abort_transaction(rk, TIMEOUT_MS);
    return error ? failed(error) : 0;
}

int main(int argc, char **argv)
{
    rd_kafka_t *rk = argc == 3 ? connect_to(argv[1]) : NULL;

    if (!rk) {
        (void)fputs("usage: live_kafka_hold BOOTSTRAP TOPIC\n", stderr);
        return 2;
    }

    int code = hold(rk, argv[2]);

    rd_kafka_destroy(rk);
    return code;
}

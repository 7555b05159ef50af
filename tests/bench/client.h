/*
 * client: what a load is made of: connections over a Unix socket with keep-alive, one
 * request at a time on each, and how long every answer took.
 *
 * A failure ends the program: it could not measure (3), or was answered anything but 200 (1).
 */
#pragma once

#include "collector/base/buf.h"

enum { REPLY_BYTES = 65536 };

struct connection {
    int fd;
    int64_t since_us; /* monotonic: when what it waits for was sent, or was due */
    size_t len;
    char reply[REPLY_BYTES];
};

/* Bound and listening, or connected. */
int unix_socket(const char *path, bool listening);

/* n connections to `path`. Owned by the caller. */
struct connection *connections_open(const char *path, size_t n);

/* A dispatch whose body is that file's content. */
void request_read(const char *body_path, struct buf *ret);

void connection_send(struct connection *c, struct slice request, int64_t since_us);

/* Read what has come; true when the answer is whole. */
bool connection_receive(struct connection *c);

struct samples {
    uint32_t *us; /* owned, room for `max` */
    size_t n;
    size_t max;
};

void samples_init(struct samples *s, size_t max);

/* The answer to c's request has just come. No more than max are kept. */
void samples_add(struct samples *s, const struct connection *c);

/* Print the rate and the percentiles, and let the samples go. */
void samples_report(struct samples *s, int64_t elapsed_us);

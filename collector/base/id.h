/*
 * id: UUIDv7 (RFC 9562), the name of a record, a dispatch, a journal.
 *
 * Ids made by one process rise strictly, also when the wall clock is set back,
 * so that an index on them grows at its end. Safe from any thread.
 */
#pragma once

#include <stdint.h>

#include "collector/base/slice.h"

enum { ID_TEXT_LEN = 36, ID_TEXT_SIZE = 37 }; /* without and with the NUL */

struct id {
    char text[ID_TEXT_SIZE]; /* lower case, with hyphens, NUL-terminated */
};

/* A new id. */
struct id id_new(void);

/* Its 36 characters, borrowed. */
struct slice id_slice(const struct id *id);

/* True when s is a UUID as written by id_new(), of any version. */
bool id_valid(struct slice s);

/* The id whose 16 bytes these are. */
struct id id_from_bytes(const unsigned char bytes[16]);

/* The 16 bytes of a valid UUID text. */
void id_bytes(struct slice s, unsigned char ret_bytes[16]);

/*
 * loader_known: which numbers of one journal are taken, each by which record.
 *
 * A number belongs to one record for ever. When it comes again, with equal bytes, that is
 * a resend; with others, the journal gave it away twice, as one does whose state folder was
 * restored from an older copy. Such a number has several records here.
 */
#pragma once

#include "collector/base/digest.h"

struct loader_known {
    struct loader_number *slots; /* owned: a hash table */
    size_t n;
    size_t cap; /* 0, or a power of two */
};

enum loader_number_is {
    LOADER_NUMBER_FREE,
    LOADER_NUMBER_ITS,     /* of this record */
    LOADER_NUMBER_ANOTHER, /* of others, and not of this one */
};

/* What the number `seq` (not 0) is to the record with this leaf. */
enum loader_number_is loader_known_as(const struct loader_known *k, uint64_t seq,
                                      const struct digest *leaf);

/* The record has it; what is there already is not added again. */
void loader_known_add(struct loader_known *k, uint64_t seq, const struct digest *leaf);

/* Release the table, not the struct. */
void loader_known_done(struct loader_known *k);

#include "collector/contract/contract.h"

#include "collector/contract/sre.h"

static const struct contract_ops *const contracts[] = {
    &contract_sre_ops,
};

const struct contract_ops *contract_find(struct slice name)
{
    for (size_t i = 0; i < sizeof(contracts) / sizeof(contracts[0]); i++) {
        if (slice_equal(name, slice_from_cstr(contracts[i]->name))) {
            return contracts[i];
        }
    }
    return NULL;
}

const char *contract_names(void)
{
    return "sre";
}

/*
 * A chain of hashes: each call hashes the digest so far, the length and the
 * bytes, so that no other division of the same bytes has the same digest.
 */
void hookset_digest_add(struct hookset *set, struct slice bytes)
{
    unsigned char length[8];

    for (size_t i = 0; i < sizeof(length); i++) {
        length[i] = (unsigned char)((uint64_t)bytes.len >> (8 * i));
    }

    const struct slice parts[] = {
        { .ptr = (const char *)set->digest.bytes, .len = DIGEST_BYTES },
        { .ptr = (const char *)length, .len = sizeof(length) },
        bytes,
    };

    set->digest = digest_of_parts(parts, sizeof(parts) / sizeof(parts[0]));
}

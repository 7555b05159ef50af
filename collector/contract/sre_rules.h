/* sre_rules: what a hook document may say (the contract's "Configuration keys"). */
#pragma once

#include "collector/contract/keys.h"
#include "collector/contract/sre.h"

enum {
    SRE_TIMEOUT_S = 30, /* when the document does not say */
    SRE_TIMEOUT_MAX_S = 3600,
    SRE_MAX_REJECTIONS = 3, /* when the document does not say */
    SRE_MAX_REJECTIONS_MAX = 25,
};

/* Add every fault and every warning of the document to its list. */
void sre_rules_check(const struct document *doc, json_t *root);

/* The tier that a document's metadata names; without one, user-global. */
enum tier sre_rules_tier(const json_t *metadata);

/*
 * why: why did this hook not fire, or what did it do?
 *
 * Walks the eight steps of the SRE contract's "When a Hook Does Not Fire", and
 * says for each: holds, fails or unknown, with its evidence. Ends in one
 * sentence and what to do. The same JSON is GET /v1/why.
 */
#pragma once

#include <stdio.h>

#include "queries/store.h"

struct why_options {
    struct slice hook;
    struct slice call;   /* --call; or else: */
    struct slice thread; /* --thread */
    struct slice tool;
    struct slice event;
    int64_t at_us; /* 0: the latest */
};

/*
 * {"hook","evaluation_id","steps":[{"step":"event","state":"holds|fails|unknown","evidence":"…",
 *  "record_id"?…}…],"verdict":"…","advice":"…"}; owned by the caller.
 * ERR_INVALID: neither call nor thread. A hook nobody knows is an answer, not an error.
 */
bool why_query(struct store *s, const struct why_options *o, json_t **ret, struct err *err)
    MUST_CHECK;

/* Draw it for people. */
void why_print(const json_t *why, FILE *out, bool color);

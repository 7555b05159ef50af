/*
 * fake_contract: a contract whose hooks, chains and waves the test writes down.
 *
 * Exit 0 passes, 1 rejects with stderr as the reason, 2 denies and stops the
 * chain; whatever failed is an `error` with the failure as its reason.
 */
#pragma once

#include "collector/contract/contract.h"

struct fake_step {
    const char *name;
    const char *script;  /* for /bin/sh, or a program's path; the request is its input */
    enum hook_type type; /* HOOK_NONE: a command */
    enum tier tier;
    enum skip_reason skip; /* SKIP_NONE: it runs */
    size_t wave;           /* rising */
    size_t chain;          /* rising; waves begin at 0 in each */
    int64_t timeout_ms;    /* 0: 10 s */
    size_t output_limit;   /* 0: 1 MiB */
    bool input_fails;      /* its input cannot be made */
};

struct fake_set {
    struct hookset set;
    const struct fake_step *steps;
    size_t n;
};

/* A set of these steps, which are borrowed until fake_set_done(). */
void fake_set_init(struct fake_set *f, const struct fake_step *steps, size_t n);
void fake_set_done(struct fake_set *f);

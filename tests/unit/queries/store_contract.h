/*
 * store_contract: what every store must do, in one suite.
 *
 * A driver's test gives a way to put records into its database and calls
 * store_contract_run(); each test begins with an empty one.
 */
#pragma once

#include "queries/store.h"
#include "tests/unit/queries/fake_records.h"

struct store_under_test {
    const char *name;
    const struct store_ops *ops;
    struct store_config config;
    /* Make the database anew with these records of journal "journal-1". */
    void (*load)(void *ctx, const struct fake_records *records);
    void *ctx;
};

/* The number of tests that failed. */
int store_contract_run(const struct store_under_test *t);

/*
 * hookset: load a contract's hooks, check them, share them, replace them.
 *
 * A set is immutable; a reload makes a new one. Whoever dispatches holds a
 * reference, so a set in use outlives its replacement. Safe from any thread.
 */
#pragma once

#include "collector/contract/contract.h"

/*
 * Load and check. NULL when there are errors; warnings and errors are in *faults
 * either way. The result has one reference.
 */
struct hookset *hookset_load(const struct contract_ops *ops, const struct hook_source *src,
                             struct faults *faults) MUST_CHECK;

/* Take and drop a reference; the last one frees. hookset_unref() accepts NULL. */
struct hookset *hookset_ref(struct hookset *set);
void hookset_unref(struct hookset *set);

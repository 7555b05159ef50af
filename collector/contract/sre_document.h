/* sre_document: one hook document, checked and made a hook. */
#pragma once

#include "collector/contract/keys.h"
#include "collector/contract/sre.h"

/*
 * Check `root`, adding every fault and warning to the document's list. True when
 * it became a hook, whose texts, definition and matcher belong to the set; its
 * bytes are in the set's digest then. A script is stored in script_dir (NULL:
 * it is only checked).
 */
bool sre_document_load(const struct document *doc, json_t *root, const char *script_dir,
                       struct hookset *set, struct hook *ret);

/* Release what the set's arena cannot: the matcher. */
void sre_document_unload(const struct hook *hook);

#define SRE_SET_TOO_LARGE "the hook set is too large"

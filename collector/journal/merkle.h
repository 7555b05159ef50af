/*
 * merkle: the tree of RFC 9162 over leaf hashes, grown leaf by leaf.
 *
 * Memory is one hash a level: complete subtrees are folded as soon as they are
 * complete, so a checkpoint over millions of frames costs what one over ten does.
 * A leaf is SHA-256(0x00 || record) (format.h), a node SHA-256(0x01 || left || right).
 * Pure; not thread-safe.
 */
#pragma once

#include <stdint.h>

#include "collector/base/digest.h"

enum { MERKLE_LEVELS = 64 };

/* The complete subtrees so far: one for each 1 in the binary writing of `leaves`. */
struct merkle {
    uint64_t leaves;
    size_t n;                           /* of `roots` */
    struct digest roots[MERKLE_LEVELS]; /* the largest subtree first */
};

/* An empty tree. */
void merkle_init(struct merkle *m);

/* Add the next leaf. */
void merkle_add(struct merkle *m, const struct digest *leaf);

/* The root; of no leaves SHA-256 of nothing. More leaves may follow. */
struct digest merkle_root(const struct merkle *m);

/* Proof that a leaf is in a tree ------------------------------------------- */

/* The siblings on the way from a leaf to the root, the lowest first. */
struct merkle_path {
    size_t n;
    struct digest nodes[MERKLE_LEVELS];
};

/* A tree that is grown to prove one leaf of it. */
struct merkle_prover {
    struct merkle tree;
    uint64_t index; /* of the leaf, from 0 */
    size_t at;      /* entry of tree.roots whose subtree has the leaf */
    struct merkle_path path;
};

/* Begin; then hand over all leaves in order. */
void merkle_prover_init(struct merkle_prover *p, uint64_t index);
void merkle_prover_add(struct merkle_prover *p, const struct digest *leaf);

/* After the last leaf: the path. False when the tree has no leaf of that index. */
bool merkle_prover_path(const struct merkle_prover *p, struct merkle_path *ret) MUST_CHECK;

/*
 * True when `path` proves that `leaf` is number `index` of a tree of `leaves`
 * leaves with that root (RFC 9162, 2.1.3.2).
 */
bool merkle_path_holds(const struct merkle_path *path, uint64_t index, uint64_t leaves,
                       const struct digest *leaf, const struct digest *root);

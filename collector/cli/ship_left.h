/*
 * ship_left: how many durable records a sink has not got, by its positions file.
 * Thread: the main thread.
 */
#pragma once

#include <stdint.h>

/* 0 also where the journals cannot be listed: for a last word only. */
uint64_t left_of(const char *state_dir, const char *sink);

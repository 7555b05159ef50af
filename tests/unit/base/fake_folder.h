/*
 * fake_folder: a folder that comes and goes with a test; in memory where there is such a disk,
 * because what a test syncs need not outlive it.
 */
#pragma once

/* For cmocka's setup and teardown. */
int fake_folder_begin(void **state);
int fake_folder_end(void **state);

/* Its path, while a test runs. */
const char *fake_folder_path(void);
/* The path of a file in it, there or not. Valid until the next call. */
const char *fake_folder_file(const char *name);

/* Write, or append to, a file in it; "sinks/x.json" makes sinks too. */
void fake_folder_put(const char *name, const char *text);
/* The whole of a file in it, up to 64 KiB; "" when there is none. Valid until the next call. */
const char *fake_folder_get(const char *name);

/* fake_folder: a state folder that comes and goes with a test. */
#pragma once

/* For cmocka's setup and teardown. */
int fake_folder_begin(void **state);
int fake_folder_end(void **state);

/* Its path, while a test runs. */
const char *fake_folder_path(void);

/* Write, or append to, a file in it; "sinks/x.json" makes sinks too. */
void fake_folder_put(const char *name, const char *text);
/* The whole of a file in it, up to 64 KiB; "" when there is none. Valid until the next call. */
const char *fake_folder_get(const char *name);

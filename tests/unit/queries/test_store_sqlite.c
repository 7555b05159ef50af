#include "queries/store.h"

#include <unistd.h>

#include "collector/sql/sqlite.h"
#include "sinks/sqlite.h"
#include "tests/unit/queries/fake_store.h"
#include "tests/unit/queries/store_contract.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

static char path[64];

static void remove_database(void)
{
    static const char *const names[] = { "t.db", "t.db-wal", "t.db-shm" };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)unlink(fake_folder_file(names[i]));
    }
}

/* As ship does it. */
static void load_sqlite(void *ctx, const struct fake_records *r)
{
    const struct sink_config cfg = { .target = slice_from_cstr(path),
                                     .timeout_ms = 5000,
                                     .name = "sqlite",
                                     .state_dir = fake_folder_path() };
    const struct span span = {
        .journal = SLICE("journal-1"), .from = 1, .to = r->n, .records = r->items, .n = r->n
    };
    struct sink *sink = NULL;
    struct err err;

    (void)ctx;
    remove_database();
    if (!sink_sqlite_ops.open(&cfg, &sink, &err) ||
        sink_sqlite_ops.write(sink, &span, &err) != SINK_OK) {
        fail_msg("%s", err.text);
    }
    sink_sqlite_ops.close(sink);
}

static void load_fake(void *ctx, const struct fake_records *r)
{
    (void)ctx;
    fake_store_load(r);
}

static bool open_it(enum err_code *ret)
{
    const struct store_config cfg = { .target = path, .timeout_ms = 1000 };
    struct store *s = NULL;
    struct err err = { 0 };
    bool ok = store_sqlite_ops.open(&cfg, &s, &err);

    if (ok) {
        s->ops->close(s);
    }
    *ret = err.code;
    return ok;
}

static void a_database_that_is_not_there_is_not_found(void **state)
{
    enum err_code code;

    (void)state;
    remove_database();
    assert_false(open_it(&code));
    assert_int_equal(code, ERR_NOT_FOUND);
    assert_int_equal(access(path, F_OK), -1); /* asking made none */
}

static void a_schema_that_is_newer_than_we_are_is_refused(void **state)
{
    struct fake_records none = { 0 };
    struct sqlite *db = NULL;
    enum err_code code;
    struct err err;

    (void)state;
    fake_records_gap(&none, (struct gap){ .known = true, .lost = 1, .cause = SLICE("quota") });
    load_sqlite(NULL, &none);
    fake_records_done(&none);
    assert_true(sqlite_open(path, SQLITE_TO_WRITE, 1000, &db, &err));
    assert_int_equal(sqlite_exec(db, "INSERT INTO schema_version VALUES (99, 'later', '')", &err),
                     SQL_DONE);
    sqlite_close(db);

    assert_false(open_it(&code));
    assert_int_equal(code, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_database_that_is_not_there_is_not_found),
        cmocka_unit_test(a_schema_that_is_newer_than_we_are_is_refused),
    };
    const struct store_under_test fake = { .name = "queries/store_fake",
                                           .ops = &fake_store_ops,
                                           .load = load_fake };
    const struct store_under_test sqlite = { .name = "queries/store_sqlite",
                                             .ops = &store_sqlite_ops,
                                             .config = { .target = path, .timeout_ms = 5000 },
                                             .load = load_sqlite };
    void *none = NULL;
    int failed;

    if (fake_folder_begin(&none) != 0) {
        return 1;
    }
    (void)snprintf(path, sizeof(path), "%s", fake_folder_file("t.db"));
    failed = store_contract_run(&fake) + store_contract_run(&sqlite) +
             cmocka_run_group_tests_name("queries/store_sqlite alone", tests, NULL, NULL);
    return fake_folder_end(&none) == 0 ? failed : 1;
}

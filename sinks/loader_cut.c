#include "sinks/loader_cut.h"

#include "sinks/loader.h"
#include "sinks/postgres.h"
#include "collector/sql/postgres.h"

void loader_cut_init(struct loader_cut *c, const struct loader_options *o)
{
    *c = (struct loader_cut){
        .cutting = { .sink = "postgres", .on_cut = o->on_cut, .ctx = o->ctx },
        .cfg = { .settings = o->postgres,
                 .name = "postgres",
                 .state_dir = o->state_dir,
                 .timeout_ms = sink_timeout_ms(o->postgres) },
    };
}

static void close_sink(struct loader_cut *c)
{
    if (c->sink) {
        c->sink->ops->close(c->sink);
        c->sink = NULL;
    }
}

void loader_cut_done(struct loader_cut *c)
{
    close_sink(c);
}

/* The session's: it goes with the connection, too. */
static bool take_lock(struct postgres *db, bool *ret_taken, struct err *err)
{
    int64_t taken = 0;

    postgres_arm(db);
    if (postgres_query(db, "SELECT pg_try_advisory_lock(hashtext('hooktrail_cut'))::int::int8",
                       NULL, 0, postgres_keep_integer, &taken, NULL, err) != SQL_DONE) {
        return false;
    }
    *ret_taken = taken != 0;
    return true;
}

/* Where the connection is lost, the lock is; the next batch tells, and connects. */
static void release_lock(struct postgres *db)
{
    struct err ignored;

    postgres_arm(db);
    if (postgres_exec(db, "SELECT pg_advisory_unlock(hashtext('hooktrail_cut'))", &ignored) !=
        SQL_DONE) {
        db->lost = true;
    }
}

static void cut_locked(struct loader_cut *c)
{
    struct err err;

    if (!c->sink && !sink_postgres_ops.open(&c->cfg, &c->sink, &err)) {
        cutting_fail(&c->cutting, &err);
        return;
    }
    if (cutting_step(&c->cutting, c->sink) == SINK_DOWN || !cutting_goes_on(&c->cutting)) {
        close_sink(c);
    }
}

void loader_cut_some(struct loader_cut *c, struct postgres *db)
{
    bool taken = false;
    struct err err;

    if (!cutting_is_due(&c->cutting)) {
        return;
    }
    if (!take_lock(db, &taken, &err)) {
        cutting_fail(&c->cutting, &err);
    } else if (!taken) {
        close_sink(c);
        cutting_leave(&c->cutting);
    } else {
        cut_locked(c);
        release_lock(db);
    }
}

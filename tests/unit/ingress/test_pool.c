#include "collector/ingress/pool.h"

#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/unit.h"

/* Jobs wait at a gate until the test opens it, and note the order in which they ran. */
struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;
    int entered;
    int done;
    int order[16];
};

struct job {
    struct pool_job base;
    struct gate *gate;
    int number;
    int64_t waited_us;
};

static void pass_gate(struct pool_job *base, int64_t waited_us)
{
    struct job *j = (struct job *)base;
    struct gate *g = j->gate;

    (void)pthread_mutex_lock(&g->mutex);
    j->waited_us = waited_us;
    g->entered++;
    (void)pthread_cond_broadcast(&g->changed);
    while (!g->open) {
        (void)pthread_cond_wait(&g->changed, &g->mutex);
    }
    g->order[g->done++] = j->number;
    (void)pthread_mutex_unlock(&g->mutex);
}

static void wait_entered(struct gate *g, int n)
{
    (void)pthread_mutex_lock(&g->mutex);
    while (g->entered < n) {
        (void)pthread_cond_wait(&g->changed, &g->mutex);
    }
    (void)pthread_mutex_unlock(&g->mutex);
}

static void open_gate(struct gate *g)
{
    (void)pthread_mutex_lock(&g->mutex);
    g->open = true;
    (void)pthread_cond_broadcast(&g->changed);
    (void)pthread_mutex_unlock(&g->mutex);
}

static const struct gate shut = { .mutex = PTHREAD_MUTEX_INITIALIZER,
                                  .changed = PTHREAD_COND_INITIALIZER };

static void make_jobs(struct job *jobs, int n, struct gate *g)
{
    for (int i = 0; i < n; i++) {
        jobs[i] = (struct job){ .base = { .run = pass_gate }, .gate = g, .number = i };
    }
}

static void a_full_queue_refuses_and_counts(void **state)
{
    struct gate g = shut;
    struct pool *p = pool_new(1, 2);
    struct pool_stats stats;
    struct job jobs[4];

    (void)state;
    make_jobs(jobs, 4, &g);
    assert_true(pool_submit(p, &jobs[0].base));
    wait_entered(&g, 1);
    assert_true(pool_submit(p, &jobs[1].base));
    assert_true(pool_submit(p, &jobs[2].base));
    assert_false(pool_submit(p, &jobs[3].base));

    pool_stats(p, &stats);
    assert_int_equal(stats.queued, 2);
    assert_int_equal(stats.running, 1);
    assert_int_equal(stats.workers, 1);
    assert_int_equal(stats.refused, 1);
    open_gate(&g);
    pool_free(p);
    assert_int_equal(g.done, 3);
}

static void the_rest_of_a_job_is_never_refused(void **state)
{
    struct gate g = shut;
    struct pool *p = pool_new(1, 1);
    struct job jobs[4];

    (void)state;
    make_jobs(jobs, 4, &g);
    assert_true(pool_submit(p, &jobs[0].base));
    wait_entered(&g, 1);
    for (int i = 1; i < 4; i++) {
        pool_submit_rest(p, &jobs[i].base);
    }
    open_gate(&g);
    pool_free(p);
    assert_int_equal(g.done, 4);
}

static void the_rest_is_done_at_once_where_there_is_no_worker(void **state)
{
    struct gate g = shut;
    struct pool *p = pool_new(0, 1);
    struct job job;

    (void)state;
    make_jobs(&job, 1, &g);
    open_gate(&g);
    assert_false(pool_submit(p, &job.base));
    pool_submit_rest(p, &job.base);
    assert_int_equal(g.done, 1);
    pool_free(p);
}

static void one_worker_takes_jobs_in_their_order_and_tells_how_long_they_waited(void **state)
{
    struct gate g = shut;
    struct pool *p = pool_new(1, 8);
    struct job jobs[5];

    (void)state;
    make_jobs(jobs, 5, &g);
    for (int i = 0; i < 5; i++) {
        assert_true(pool_submit(p, &jobs[i].base));
    }
    wait_entered(&g, 1);
    open_gate(&g);
    pool_free(p);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(g.order[i], i);
        assert_true(jobs[i].waited_us >= 0);
    }
}

static void workers_are_started_as_they_are_needed_up_to_the_limit(void **state)
{
    struct gate g = shut;
    struct pool *p = pool_new(3, 8);
    struct pool_stats stats;
    struct job jobs[6];

    (void)state;
    make_jobs(jobs, 6, &g);
    pool_stats(p, &stats);
    assert_int_equal(stats.workers, 0);
    for (int i = 0; i < 6; i++) {
        assert_true(pool_submit(p, &jobs[i].base));
    }
    wait_entered(&g, 3);
    pool_stats(p, &stats);
    assert_int_equal(stats.workers, 3);
    assert_int_equal(stats.running, 3);
    assert_int_equal(stats.queued, 3);
    open_gate(&g);
    pool_free(p);
    assert_int_equal(g.done, 6);
}

static void a_pool_without_jobs_ends(void **state)
{
    (void)state;
    pool_free(pool_new(4, 4));
    pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_queue_refuses_and_counts),
        cmocka_unit_test(the_rest_of_a_job_is_never_refused),
        cmocka_unit_test(the_rest_is_done_at_once_where_there_is_no_worker),
        cmocka_unit_test(one_worker_takes_jobs_in_their_order_and_tells_how_long_they_waited),
        cmocka_unit_test(workers_are_started_as_they_are_needed_up_to_the_limit),
        cmocka_unit_test(a_pool_without_jobs_ends),
    };

    return cmocka_run_group_tests_name("ingress/pool", tests, NULL, NULL);
}

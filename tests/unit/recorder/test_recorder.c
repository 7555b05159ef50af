/*
 * The recorder over a scripted journal: it stores, refuses, or lets the record
 * wait, as each test says. Only these functions of the journal are in this
 * program; slots are real ones, in a folder of the test.
 */
#include "collector/recorder/recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/journal/inflight_format.h"
#include "collector/journal/reader.h"
#include "collector/record/decode.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

/* ---- The journal ------------------------------------------------------------- */

enum { LINES_MAX = 16 };

static struct {
    enum { STORES, LOSES, REFUSES, WAITS } mode;
    char *lines[LINES_MAX]; /* what was submitted or appended, owned */
    size_t n;
    struct journal_batch *waiting;
    uint64_t counted_lost;
    uint64_t owed;
    const char *holds; /* a record that a reader finds */
    bool read;
} disk;

static struct journal *const a_journal = (struct journal *)&disk;

static void keep(struct slice bytes)
{
    assert_true(disk.n < LINES_MAX);
    assert_true(bytes.len <= RECORD_MAX_BYTES);
    disk.lines[disk.n] = strndup(bytes.ptr, bytes.len);
    disk.n++;
}

bool journal_submit(struct journal *j, struct journal_batch *b, struct err *err)
{
    (void)j;
    if (disk.mode == REFUSES) {
        return err_set(err, ERR_AGAIN, "the queue is full");
    }
    for (size_t i = 0; i < b->n; i++) {
        keep(b->records[i].bytes);
    }
    if (disk.mode == WAITS) {
        disk.waiting = b;
    } else {
        b->on_settled(b, disk.mode == STORES ? JOURNAL_STORED : JOURNAL_LOST, 1);
    }
    return true;
}

void journal_owe(struct journal *j, struct journal_batch *b)
{
    (void)j;
    disk.owed += b->n;
}

void journal_count_lost(struct journal *j, uint64_t n, const char *cause)
{
    (void)j;
    (void)cause;
    disk.counted_lost += n;
}

void journal_stats(struct journal *j, struct journal_stats *ret)
{
    (void)j;
    *ret = (struct journal_stats){ .durable_seq = 41 };
}

bool journal_append(struct journal *j, enum record_type type, struct slice bytes,
                    int64_t timeout_ms, uint64_t *ret_seq, struct err *err)
{
    (void)j;
    (void)type;
    (void)timeout_ms;
    if (disk.mode == REFUSES) {
        return err_set(err, ERR_AGAIN, "the queue is full");
    }
    keep(bytes);
    *ret_seq = 1;
    return true;
}

bool journal_list(const char *state_dir, bool (*on_journal)(void *ctx, const struct journal_info *),
                  void *ctx, struct err *err)
{
    struct journal_info info = { .role = "collect", .durable_seq = 42 };

    (void)state_dir;
    (void)err;
    (void)on_journal(ctx, &info);
    return true;
}

bool journal_reader_open(const char *dir, uint64_t from_seq, struct journal_reader **ret,
                         struct err *err)
{
    (void)dir;
    (void)err;
    assert_int_equal(from_seq, 42);
    disk.read = false;
    *ret = (struct journal_reader *)&disk;
    return true;
}

void journal_reader_close(struct journal_reader *r)
{
    (void)r;
}

enum journal_read journal_reader_next(struct journal_reader *r, struct journal_frame *ret,
                                      struct err *err)
{
    (void)r;
    (void)err;
    if (!disk.holds || disk.read) {
        return JOURNAL_READ_WAIT;
    }
    disk.read = true;
    *ret = (struct journal_frame){ .seq = 42,
                                   .type = RECORD_HOOK_EVALUATION,
                                   .bytes = slice_from_cstr(disk.holds) };
    return JOURNAL_READ_FRAME;
}

/* What waited is settled so. */
static void settle(enum journal_outcome outcome)
{
    disk.waiting->on_settled(disk.waiting, outcome, outcome == JOURNAL_STORED ? 1 : 0);
}

/* ---- A contract -------------------------------------------------------------- */

enum { HOOKS = 2 };

static bool give_true(struct dispatch *d, const struct chain *chain, const struct step *step,
                      struct hook_input *ret, struct err *err)
{
    static const char *const argv[] = { "/bin/true", NULL };
    static const char *const envp[] = { NULL };

    (void)d;
    (void)chain;
    (void)step;
    (void)err;
    *ret = (struct hook_input){ .argv = argv, .envp = envp };
    return true;
}

static void judge_pass(struct dispatch *d, const struct step *step, const struct outcome *outcome,
                       struct verdict *ret)
{
    (void)d;
    (void)step;
    (void)outcome;
    *ret = (struct verdict){ .decision = DECISION_PASS };
}

static enum fold_result fold_on(struct dispatch *d, struct chain *chain, const struct step *step,
                                const struct verdict *verdict)
{
    (void)d;
    (void)step;
    (void)verdict;
    chain->decision = DECISION_PASS;
    return FOLD_GO_ON;
}

static const struct contract_ops ops = {
    .name = "test", .input = give_true, .judge = judge_pass, .fold = fold_on
};

struct fixture {
    struct hook hooks[HOOKS];
    struct hookset set;
    struct dispatch d;
    struct chain chain;
    struct wave wave;
    struct step steps[HOOKS];
    struct execution executions[HOOKS];
    struct inflight *inflight;
    struct recorder *recorder;

    pthread_mutex_t lock;
    pthread_cond_t answered;
    int answers;
    enum recorded outcome;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    memset(&disk, 0, sizeof(disk));
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->answered, NULL);
    f->set = (struct hookset){ .ops = &ops, .hooks = f->hooks, .n_hooks = HOOKS };
    memset(f->set.digest_hex, 'd', DIGEST_HEX_SIZE - 1);
    for (uint32_t i = 0; i < HOOKS; i++) {
        f->hooks[i] = (struct hook){ .name = i == 0 ? SLICE("first") : SLICE("second"),
                                     .type = HOOK_COMMAND,
                                     .tier = TIER_AGENT,
                                     .definition = SLICE("{\"name\":\"h\"}") };
        f->executions[i] = (struct execution){ .ordinal = i,
                                               .hook_name = f->hooks[i].name,
                                               .decision = DECISION_SKIPPED,
                                               .skip_reason = SKIP_DISABLED };
        f->steps[i] = (struct step){ .hook = &f->hooks[i],
                                     .timeout_ms = 10000,
                                     .execution = &f->executions[i] };
    }
    f->wave = (struct wave){ .steps = f->steps, .n_steps = HOOKS };
    f->chain = (struct chain){ .id = id_new(),
                               .kind = CHAIN_ALL,
                               .waves = &f->wave,
                               .n_waves = 1,
                               .hooks_configured = HOOKS,
                               .decision = DECISION_PASS };
    dispatch_init(&f->d, &f->set, SLICE(""));
    f->d.facts.thread_id = SLICE("T");
    f->d.facts.tool_name = SLICE("Bash");
    f->d.chains = &f->chain;
    f->d.n_chains = 1;
    *state = f;
    return fake_folder_begin(state);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    recorder_free(f->recorder);
    inflight_close(f->inflight);
    dispatch_done(&f->d);
    for (size_t i = 0; i < disk.n; i++) {
        free(disk.lines[i]);
    }
    free(f);
    return fake_folder_end(state);
}

static void set_payload(struct fixture *f, const char *json)
{
    struct err err;

    assert_true(payload_check(slice_from_cstr(json), &f->d.payload, &err));
}

static void start(struct fixture *f, enum capture capture, int64_t record_wait_ms)
{
    struct recorder_options o = { .collector = "m1",
                                  .state_dir = fake_folder_path(),
                                  .journal = a_journal,
                                  .inflight = f->inflight,
                                  .record_wait_ms = record_wait_ms,
                                  .capture = capture };

    f->recorder = recorder_new(&o);
}

static void on_recorded(void *ctx, struct dispatch *d, enum recorded outcome)
{
    struct fixture *f = ctx;

    assert_ptr_equal(d, &f->d);
    pthread_mutex_lock(&f->lock);
    f->answers++;
    f->outcome = outcome;
    pthread_cond_signal(&f->answered);
    pthread_mutex_unlock(&f->lock);
}

static void run(struct fixture *f)
{
    recorder_run(f->recorder, &f->d, on_recorded, f);
}

static void record(struct fixture *f, enum capture capture)
{
    start(f, capture, 1000);
    run(f);
}

static enum recorded answer_of(struct fixture *f)
{
    pthread_mutex_lock(&f->lock);
    while (f->answers == 0) {
        pthread_cond_wait(&f->answered, &f->lock);
    }

    enum recorded outcome = f->outcome;

    pthread_mutex_unlock(&f->lock);
    return outcome;
}

static struct evaluation evaluation_at(struct fixture *f, size_t i)
{
    struct evaluation e = { 0 };
    struct err err = { 0 };

    assert_true(i < disk.n);
    if (!decode_evaluation(slice_from_cstr(disk.lines[i]), &f->d.arena, &e, &err)) {
        fail_msg("%s: %s", err.text, disk.lines[i]);
    }
    return e;
}

/* ---- Tests ------------------------------------------------------------------- */

static void a_dispatch_is_recorded_with_what_is_known_of_its_payload(void **state)
{
    struct fixture *f = *state;

    set_payload(f, "{\"tool_name\":\"Bash\",\"n\":1.50,\"n\":2}");
    record(f, CAPTURE_KEYS);
    assert_int_equal(answer_of(f), RECORDED_STORED);
    assert_int_equal(f->answers, 1);

    struct evaluation e = evaluation_at(f, 0);
    struct digest sum = digest_of(f->d.payload.raw);
    char hex[DIGEST_HEX_SIZE];

    digest_hex(&sum, hex);
    assert_int_equal(disk.n, 1);
    assert_true(slice_equal(e.head.id, id_slice(&f->chain.id)));
    assert_true(slice_equal(e.head.collector, SLICE("m1")));
    assert_true(slice_equal(e.dispatch_id, id_slice(&f->d.id)));
    assert_int_equal(e.final_decision, DECISION_PASS);
    assert_int_equal(e.n_hooks, HOOKS);
    assert_int_equal(e.payload.bytes, f->d.payload.raw.len);
    assert_true(slice_equal(e.payload.keys, SLICE("[\"tool_name\",\"n\",\"n\"]")));
    assert_true(slice_equal(e.payload.sha256, slice_from_cstr(hex)));
    assert_int_equal(e.payload.captured.len, 0);
}

static void what_is_captured_is_redacted_and_the_dispatch_is_not(void **state)
{
    struct fixture *f = *state;

    set_payload(f, "{ \"password\": \"hunter2\" }");
    f->chain.reason = SLICE("token=abc123 found");
    f->executions[0].reason.text = SLICE("password=hunter2");
    f->executions[0].decision = DECISION_REJECT;
    f->executions[0].stderr_tail = SLICE("--api-key k123");
    record(f, CAPTURE_PAYLOAD);

    struct evaluation e = evaluation_at(f, 0);

    assert_true(slice_equal(e.payload.captured, SLICE("{\"password\":\"[redacted]\"}")));
    assert_true(slice_equal(e.reason.text, SLICE("token=[redacted] found")));
    assert_true(slice_equal(e.hooks[0].reason.text, SLICE("password=[redacted]")));
    assert_true(slice_equal(e.hooks[0].stderr_tail, SLICE("--api-key [redacted]")));
    assert_int_equal(e.payload.erased, 4);
    assert_true(slice_equal(f->chain.reason, SLICE("token=abc123 found")));
    assert_true(slice_equal(f->executions[0].reason.text, SLICE("password=hunter2")));
}

static void confidential_content_never_enters_a_record(void **state)
{
    struct fixture *f = *state;

    set_payload(f, "{\"message\":\"content-x\"}");
    f->d.confidential = true;
    f->d.tool = (struct tool_call){ .phase = PHASE_START, .input = f->d.payload };
    f->executions[0].decision = DECISION_PASS;
    f->executions[0].stderr_tail = SLICE("saw content-x");
    record(f, CAPTURE_PAYLOAD);
    assert_int_equal(disk.n, 2);
    for (size_t i = 0; i < disk.n; i++) {
        assert_null(strstr(disk.lines[i], "content-x"));
        assert_null(strstr(disk.lines[i], "sha256"));
    }
    assert_non_null(strstr(disk.lines[0], "\"keys\":[\"message\"]"));
}

static void a_tool_call_has_a_record_of_its_own(void **state)
{
    struct fixture *f = *state;
    struct tool_execution t;
    struct err err;

    set_payload(f, "{\"tool_input\":{\"command\":\"TOKEN=abc ls\",\"n\":1.0}}");
    f->d.tool = (struct tool_call){ .phase = PHASE_END,
                                    .sub_agent_name = SLICE("S"),
                                    .input = payload_get(f->d.payload, SLICE("tool_input")),
                                    .has_succeeded = true,
                                    .succeeded = true };
    record(f, CAPTURE_KEYS);
    assert_int_equal(disk.n, 2);
    assert_true(decode_tool_execution(slice_from_cstr(disk.lines[1]), &f->d.arena, &t, &err));
    assert_int_equal(t.phase, PHASE_END);
    assert_true(t.has_succeeded && t.tool_succeeded);
    assert_true(slice_equal(t.thread_id, SLICE("T")));
    assert_true(slice_equal(t.tool_name, SLICE("Bash")));
    assert_true(
        slice_equal(t.tool_input, SLICE("{\"command\":\"TOKEN=[redacted] ls\",\"n\":1.0}")));
    assert_int_equal(t.tool_output.len, 0);
}

static void a_reply_waits_so_long_and_no_longer(void **state)
{
    struct fixture *f = *state;
    struct recorder_stats stats;

    disk.mode = WAITS;
    start(f, CAPTURE_KEYS, 20);
    run(f);
    assert_int_equal(answer_of(f), RECORDED_LATE);

    size_t n = disk.waiting->n;

    settle(JOURNAL_STORED);
    recorder_stats(f->recorder, &stats);
    assert_int_equal(f->answers, 1);
    assert_int_equal(stats.late, 1);
    assert_int_equal(disk.owed, n);
    assert_int_equal(stats.lost, 0);
    assert_int_equal(stats.dispatches, 1);
}

/* The thread that ends waits sleeps until what was due first then, or until it is told. */
static void a_wait_ends_whoever_came_and_went_before_it(void **state)
{
    struct fixture *f = *state;

    start(f, CAPTURE_KEYS, 20);
    for (int i = 0; i < 4; i++) {
        disk.mode = STORES;
        run(f);
        assert_int_equal(f->outcome, RECORDED_STORED);
        f->answers = 0;
        disk.mode = WAITS;
        run(f);
        assert_int_equal(answer_of(f), RECORDED_LATE);
        settle(JOURNAL_STORED);
    }
}

static void a_record_may_settle_after_its_recorder_is_gone(void **state)
{
    struct fixture *f = *state;

    disk.mode = WAITS;
    start(f, CAPTURE_KEYS, 20);
    run(f);
    recorder_free(f->recorder);
    f->recorder = NULL;
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->outcome, RECORDED_LATE);

    settle(JOURNAL_LOST);
    assert_int_equal(f->answers, 1);
}

static void what_the_journal_does_not_take_is_lost_and_counted(void **state)
{
    struct fixture *f = *state;
    struct recorder_stats stats;

    disk.mode = REFUSES;
    f->d.tool.phase = PHASE_START;
    record(f, CAPTURE_KEYS);
    recorder_stats(f->recorder, &stats);
    assert_int_equal(answer_of(f), RECORDED_LOST);
    assert_int_equal(f->answers, 1);
    assert_int_equal(disk.counted_lost, 2);
    assert_int_equal(stats.lost, 1);
}

static void what_the_journal_loses_later_it_has_counted_itself(void **state)
{
    struct fixture *f = *state;

    disk.mode = LOSES;
    record(f, CAPTURE_KEYS);
    assert_int_equal(answer_of(f), RECORDED_LOST);
    assert_int_equal(disk.counted_lost, 0);
}

static struct slice long_text(struct fixture *f, size_t n)
{
    char *text = arena_alloc(&f->d.arena, n, 1);

    memset(text, 'x', n);
    return (struct slice){ .ptr = text, .len = n };
}

enum { MANY = 4000 };

/* The first hook, many times over; the executions are for the test to fill. */
static struct execution *many_hooks(struct fixture *f)
{
    static struct step steps[MANY];
    struct execution *x = arena_alloc(&f->d.arena, MANY, sizeof(*x));

    for (uint32_t i = 0; i < MANY; i++) {
        x[i] = f->executions[0];
        x[i].ordinal = i;
        steps[i] = f->steps[0];
        steps[i].execution = &x[i];
    }
    f->wave = (struct wave){ .steps = steps, .n_steps = MANY };
    return x;
}

static void a_record_that_is_too_large_shrinks_and_is_not_lost(void **state)
{
    struct fixture *f = *state;
    struct execution *x = many_hooks(f);

    for (size_t i = 0; i < MANY; i++) {
        x[i].decision = DECISION_PASS;
        x[i].stderr_tail = SLICE("tail");
    }
    f->chain.reason = SLICE("why");
    f->d.facts.thread_id = long_text(f, 300 * 1024);
    record(f, CAPTURE_KEYS);

    struct evaluation e = evaluation_at(f, 0);

    assert_int_equal(f->outcome, RECORDED_STORED);
    assert_int_equal(e.thread_id.len, 256);
    assert_int_equal(e.hooks_run, MANY);
    assert_int_equal(e.n_hooks, 512);
    assert_int_equal(e.hooks_unlisted, MANY - 512);
    assert_true(slice_equal(e.reason.text, SLICE("why")));
}

static void the_hook_that_decided_is_listed_however_many_were_skipped(void **state)
{
    struct fixture *f = *state;
    struct execution *x = many_hooks(f);

    for (size_t i = 0; i < MANY; i++) {
        x[i].skip_reason = SKIP_MATCHER;
        x[i].matcher = SLICE("SomeOtherTool|YetAnotherTool|AndOneMore");
    }
    x[MANY - 1].decision = DECISION_REJECT;
    x[MANY - 1].skip_reason = SKIP_NONE;
    record(f, CAPTURE_KEYS);

    struct evaluation e = evaluation_at(f, 0);

    assert_int_equal(e.n_hooks + e.hooks_unlisted, MANY);
    assert_int_equal(e.hooks[e.n_hooks - 1].ordinal, MANY - 1);
    assert_int_equal(e.hooks[e.n_hooks - 1].decision, DECISION_REJECT);
}

static void a_secret_that_the_cut_of_stderr_would_split_is_redacted_whole(void **state)
{
    struct fixture *f = *state;
    struct buf text;

    buf_init(&text, 8192);
    buf_add(&text, SLICE("password=Sup3rS3cretLongPassphrase\n"));
    buf_add(&text, long_text(f, 1004));
    f->executions[0].decision = DECISION_PASS;
    f->executions[0].stderr_tail = buf_slice(&text);
    record(f, CAPTURE_KEYS);

    struct slice tail = evaluation_at(f, 0).hooks[0].stderr_tail;

    assert_int_equal(tail.len, RECORD_STDERR_BYTES);
    assert_null(memmem(tail.ptr, tail.len, "phrase", 6));
    buf_done(&text);
}

/* {"KEY":"xxx…"} of so many letters. */
static void add_long_json(struct fixture *f, struct buf *b, const char *key, size_t n)
{
    buf_init(b, 1024 * 1024);
    buf_addf(b, "{\"%s\":\"", key);
    buf_add(b, long_text(f, n));
    buf_add(b, SLICE("\"}"));
}

static void the_captured_payload_goes_before_anything_else(void **state)
{
    struct fixture *f = *state;
    struct buf payload;

    add_long_json(f, &payload, "text", 60 * 1024);
    set_payload(f, buf_cstr(&payload));
    f->executions[0].decision = DECISION_PASS;
    f->d.facts.thread_id = long_text(f, 200 * 1024);
    record(f, CAPTURE_PAYLOAD);

    struct evaluation e = evaluation_at(f, 0);

    assert_int_equal(e.payload.captured.len, 0);
    assert_int_equal(e.thread_id.len, 200 * 1024);
    buf_done(&payload);
}

static void keep_left(void *ctx, const struct inflight_entry *left)
{
    struct inflight_entry *ret = ctx;

    *ret = *left;
}

/* A copy that does not know that it is one. */
static void pretend_to_be_first(const char *dir)
{
    const uint64_t unknown = 0;
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/inflight", dir);

    CLEANUP(fs_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_int_equal(pwrite(fd, &unknown, sizeof(unknown), offsetof(struct inflight_header, inode)),
                     sizeof(unknown));
}

/* What a successor would find, read from a copy of the file: the file itself is in use. */
static bool slot_is_left(struct inflight_entry *ret)
{
    struct inflight *copy;
    struct err err;
    char command[256];
    char dir[64];

    (void)snprintf(dir, sizeof(dir), "%s/copy", fake_folder_path());
    (void)snprintf(command, sizeof(command), "mkdir -p %s && cp %s %s", dir,
                   fake_folder_file("inflight"), dir);
    assert_int_equal(system(command), 0);
    pretend_to_be_first(dir);
    *ret = (struct inflight_entry){ 0 };
    assert_true(inflight_open(dir, keep_left, ret, &copy, &err));
    inflight_close(copy);
    return ret->started_us > 0;
}

static void hooks_that_run_stand_in_a_slot_until_their_record_is_stored(void **state)
{
    struct fixture *f = *state;
    struct inflight_entry left;
    struct err err;

    assert_true(inflight_open(fake_folder_path(), keep_left, &left, &f->inflight, &err));
    f->steps[0].run = true;
    disk.mode = WAITS;
    record(f, CAPTURE_KEYS);
    assert_int_equal(f->executions[0].decision, DECISION_PASS);
    assert_true(slot_is_left(&left));
    assert_string_equal(left.evaluation_id.text, f->chain.id.text);
    assert_string_equal(left.dispatch_id.text, f->d.id.text);
    assert_string_equal(left.hook_name, "first");
    assert_string_equal(left.thread_id, "T");
    assert_string_equal(left.chain, "all");
    assert_int_equal(left.journal_seq, 41);
    assert_true(left.pid > 0);
    assert_non_null(strstr(left.tag, f->chain.id.text));

    settle(JOURNAL_STORED);
    assert_false(slot_is_left(&left));
}

static struct inflight_entry left_entry(struct fixture *f)
{
    struct inflight_entry left = { .dispatch_id = f->d.id,
                                   .evaluation_id = f->chain.id,
                                   .journal_seq = 41,
                                   .started_us = 1796048565000001,
                                   .contract = "sre",
                                   .chain = "prompt",
                                   .thread_id = "T",
                                   .hook_name = "slow",
                                   .ordinal = 3,
                                   .tag = "no-such-run" };

    return left;
}

static void interrupted(struct fixture *f, const struct inflight_entry *left)
{
    start(f, CAPTURE_KEYS, 1000);
    recorder_interrupted(f->recorder, left);
}

static void what_a_predecessor_left_is_recorded_as_interrupted(void **state)
{
    struct fixture *f = *state;
    struct inflight_entry left = left_entry(f);

    interrupted(f, &left);

    struct evaluation e = evaluation_at(f, 0);

    assert_true(slice_equal(e.head.id, id_slice(&f->chain.id)));
    assert_int_equal(e.head.time_us, left.started_us);
    assert_int_equal(e.final_decision, DECISION_INTERRUPTED);
    assert_int_equal(e.chain, CHAIN_PROMPT);
    assert_true(slice_equal(e.thread_id, SLICE("T")));
    assert_true(slice_equal(e.hooks[0].hook_name, SLICE("slow")));
    assert_int_equal(e.hooks[0].ordinal, 3);
    assert_int_equal(e.hooks[0].decision, DECISION_INTERRUPTED);
}

static void what_the_journal_holds_already_is_not_interrupted(void **state)
{
    struct fixture *f = *state;
    struct inflight_entry left = left_entry(f);
    char line[160];

    (void)snprintf(line, sizeof(line), "{\"type\":\"hook_evaluation\",\"schema\":1,\"id\":\"%s\"}",
                   f->chain.id.text);
    disk.holds = line;
    interrupted(f, &left);
    assert_int_equal(disk.n, 0);

    left.evaluation_id = id_new();
    recorder_interrupted(f->recorder, &left);
    assert_int_equal(disk.n, 1);
}

static void an_interrupted_evaluation_that_cannot_be_written_is_counted(void **state)
{
    struct fixture *f = *state;
    struct inflight_entry left = left_entry(f);

    disk.mode = REFUSES;
    interrupted(f, &left);
    assert_int_equal(disk.counted_lost, 1);
}

static void a_full_disk_holds_no_start_back_for_what_was_interrupted(void **state)
{
    struct fixture *f = *state;
    struct inflight_entry left = left_entry(f);

    disk.mode = WAITS;
    interrupted(f, &left);
    assert_int_equal(disk.owed, 1); /* its slot is free now */
    assert_int_equal(disk.counted_lost, 0);
    settle(JOURNAL_STORED);
}

static void a_large_hook_set_is_split_over_records(void **state)
{
    struct fixture *f = *state;
    enum { SOME = 5 };
    static struct hook hooks[SOME];
    struct buf definition;
    struct err err;

    add_long_json(f, &definition, "name", 100 * 1024);
    for (size_t i = 0; i < SOME; i++) {
        hooks[i] = (struct hook){ .name = SLICE("h"), .definition = buf_slice(&definition) };
    }
    hooks[2].definition = long_text(f, 300 * 1024);
    f->set.hooks = hooks;
    f->set.n_hooks = SOME;
    start(f, CAPTURE_KEYS, 1000);
    assert_true(recorder_registry(f->recorder, &f->set, &err));

    size_t listed = 0;

    assert_int_equal(disk.n, 4);
    for (uint32_t i = 0; i < disk.n; i++) {
        struct hook_registry r;
        struct payload_iter it;
        struct json_value item = { 0 };

        assert_true(decode_hook_registry(slice_from_cstr(disk.lines[i]), &f->d.arena, &r, &err));
        assert_int_equal(r.part, i);
        assert_int_equal(r.parts, 4);
        assert_int_equal(r.config_digest.len, 64);
        it = payload_iter((struct json_value){ .raw = r.hooks, .kind = JSON_KIND_ARRAY });
        while (payload_next(&it, NULL, &item)) {
            listed++;
        }
        assert_int_equal(payload_get(item, SLICE("truncated")).kind,
                         i == 1 ? JSON_KIND_TRUE : JSON_KIND_NONE);
    }
    assert_int_equal(listed, SOME);
    buf_done(&definition);
}

static void an_empty_hook_set_is_recorded_too(void **state)
{
    struct fixture *f = *state;
    struct err err;

    f->set.n_hooks = 0;
    start(f, CAPTURE_KEYS, 1000);
    assert_true(recorder_registry(f->recorder, &f->set, &err));
    assert_int_equal(disk.n, 1);
    assert_non_null(strstr(disk.lines[0], "\"part\":0,\"parts\":1,\"hooks\":[]}"));
}

static void an_admin_action_is_recorded_or_says_why_not(void **state)
{
    struct fixture *f = *state;
    struct admin a;
    struct err err = { 0 };

    start(f, CAPTURE_KEYS, 1000);
    assert_true(recorder_admin(f->recorder, "reload", "uid 0", SLICE("{\"hooks\":2}"), &err));
    assert_true(decode_admin(slice_from_cstr(disk.lines[0]), &f->d.arena, &a, &err));
    assert_true(slice_equal(a.action, SLICE("reload")));
    assert_true(slice_equal(a.details, SLICE("{\"hooks\":2}")));

    disk.mode = REFUSES;
    assert_false(recorder_admin(f->recorder, "reload", "uid 0", SLICE(""), &err));
    assert_string_equal(err.text, "admin action reload: the queue is full");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_dispatch_is_recorded_with_what_is_known_of_its_payload),
        TEST(what_is_captured_is_redacted_and_the_dispatch_is_not),
        TEST(confidential_content_never_enters_a_record),
        TEST(a_tool_call_has_a_record_of_its_own),
        TEST(a_reply_waits_so_long_and_no_longer),
        TEST(a_wait_ends_whoever_came_and_went_before_it),
        TEST(a_record_may_settle_after_its_recorder_is_gone),
        TEST(what_the_journal_does_not_take_is_lost_and_counted),
        TEST(what_the_journal_loses_later_it_has_counted_itself),
        TEST(a_record_that_is_too_large_shrinks_and_is_not_lost),
        TEST(the_hook_that_decided_is_listed_however_many_were_skipped),
        TEST(a_secret_that_the_cut_of_stderr_would_split_is_redacted_whole),
        TEST(the_captured_payload_goes_before_anything_else),
        TEST(hooks_that_run_stand_in_a_slot_until_their_record_is_stored),
        TEST(what_a_predecessor_left_is_recorded_as_interrupted),
        TEST(what_the_journal_holds_already_is_not_interrupted),
        TEST(an_interrupted_evaluation_that_cannot_be_written_is_counted),
        TEST(a_full_disk_holds_no_start_back_for_what_was_interrupted),
        TEST(a_large_hook_set_is_split_over_records),
        TEST(an_empty_hook_set_is_recorded_too),
        TEST(an_admin_action_is_recorded_or_says_why_not),
    };

    return cmocka_run_group_tests_name("recorder/recorder", tests, NULL, NULL);
}

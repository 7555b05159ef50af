/*
 * contract: what one agent system means by a hook.
 *
 * The ops table is the heart of the collector. The dispatcher runs chains and
 * knows none of the systems; a contract answers its questions and runs nothing:
 *
 *     load ─▶ hookset                          once, and at each reload
 *     open ─▶ plan ─▶ for each step that runs: input ─▶ (run) ─▶ judge ─▶ fold
 *                  └▶ reply                     the answer to the host
 *     telemetry                                 rows in the contract's own names
 *
 * A plan is a list of chains; a chain is folded into one decision, and is a list
 * of waves; the steps of one wave run side by side, and are folded in order
 * when all of them are done. The contracts of today have one step a wave.
 *
 * Adding a system: one file with an ops table, its line in contract_find(), its
 * vectors in tests/contract/cases/NAME.
 *
 * Threads: a hookset is immutable and shared; everything else here belongs to
 * the worker that runs the dispatch.
 */
#pragma once

#include <jansson.h>

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "collector/base/digest.h"
#include "collector/base/err.h"
#include "collector/base/fault.h"
#include "collector/base/id.h"
#include "collector/match/matcher.h"
#include "collector/record/payload.h"
#include "collector/record/record.h"

struct contract_ops;
struct dispatch;

/* ---- Hooks ---------------------------------------------------------------- */

/* One configured hook, as the generic parts see it. */
struct hook {
    struct slice name;
    enum hook_type type;
    enum tier tier;
    struct slice matcher;   /* as configured */
    struct slice fail_mode; /* as configured, or the contract's default */
    /*
     * JSON object for the registry: no script text, secret, header value or URL
     * credentials. In every contract `name type tier agent enabled events (a list)
     * activation_mode sources matcher fail_mode timeout_s` where it has them.
     */
    struct slice definition;
    void *own; /* the contract's own definition, in the set's arena */
};

/* All hooks of one contract; immutable once loaded. */
struct hookset {
    const struct contract_ops *ops;
    struct arena arena; /* holds everything below */
    struct hook *hooks; /* in the order of the files */
    size_t n_hooks;
    struct digest digest; /* of every definition, script text included */
    char digest_hex[DIGEST_HEX_SIZE];
    void *own;                             /* the contract's own, e.g. the hooks folder's path */
    void (*free_own)(struct hookset *set); /* what the arena cannot free (matchers); may be NULL */
    int64_t loaded_us;                     /* when hookset_load() made it */
    int refs;                              /* dispatcher/hookset.c counts them */
};

/* Where a set is loaded from. */
struct hook_source {
    const char *path;         /* a file, or a folder */
    const char *secrets_path; /* NULL: none */
    const char *script_dir;   /* private folder in which `load` stores scripts as files, by digest;
                                 NULL: the set is only checked, never run */
};

/* ---- A plan --------------------------------------------------------------- */

/* One hook's place in a chain: it runs, or it does not and why. */
struct step {
    const struct hook *hook;
    bool run;
    enum skip_reason skip;          /* when run is false */
    enum matcher_mode matcher_mode; /* how the matcher decided, when it was asked */
    int64_t timeout_ms;
    int64_t drain_ms;
    size_t output_limit_bytes;   /* 0: stdout is discarded and stderr's tail kept, no limit */
    size_t stderr_tail_bytes;    /* how much of stderr is kept where there is no limit */
    struct execution *execution; /* the runner fills it; in the dispatch's arena */
};

struct wave {
    struct step *steps;
    size_t n_steps;
};

/* Hooks that are folded into one decision; becomes one evaluation. */
struct chain {
    struct id id; /* of its evaluation; the runner makes it */
    enum chain_kind kind;
    struct wave *waves;
    size_t n_waves;
    uint32_t hooks_configured;

    /* What fold has made of it so far. `plan` sets a decision for an empty chain. */
    enum decision decision;
    struct slice reason; /* whole */
    struct slice allowing_hook;
    uint32_t rejection_count;
    void *own; /* the contract's, in the dispatch's arena */

    /* The runner's. */
    int64_t started_us; /* wall clock */
    int64_t duration_us;
    bool stopped; /* fold said so */
};

/* ---- Running one step ----------------------------------------------------- */

/* What a hook is given. Slices and strings in the dispatch's arena. */
struct hook_input {
    /* HOOK_COMMAND */
    const char *const *argv;
    const char *const *envp;
    const char *cwd; /* NULL: ours */
    /* HOOK_HTTP */
    const char *url;
    const char *const *headers; /* "Name: value", NULL-terminated */
    /* HOOK_PROMPT: the body is the prompt */
    const char *model; /* NULL: the runner's own choice */
    /* all */
    struct slice body;
};

/* What came of running it, before anybody judged. */
struct outcome {
    enum cause cause;     /* CAUSE_NONE: ran to its end, or got an answer */
    struct slice failure; /* for people, when cause is set */
    bool has_exit_code;
    int exit_code;
    int signal; /* 0: none */
    bool timed_out;
    struct slice out;     /* stdout, or the body of the answer */
    struct slice err_out; /* stderr: all of it up to the limit, or the tail */
    int http_status;      /* 0: none */
    struct slice http_phrase;
};

/* What the contract makes of an outcome. */
struct verdict {
    enum decision decision;
    struct slice reason; /* whole */
    bool blank_reason;
    struct slice exception_type;
    enum cause cause;
    enum decision intended; /* DECISION_NONE when the output meant what counted */
    void *own;              /* for fold, in the dispatch's arena */
};

enum fold_result { FOLD_GO_ON, FOLD_STOP };

/* ---- A dispatch ----------------------------------------------------------- */

/* Start or end of a tool call, when the event is one. */
struct tool_call {
    enum tool_phase phase;
    struct slice sub_agent_name;
    struct json_value input; /* raw; kind NONE: none */
    struct json_value output;
    bool has_succeeded;
    bool succeeded;
};

/* One event on its way through: made by dispatch_init(), gone with dispatch_done(). */
struct dispatch {
    struct arena arena; /* of everything the dispatch makes */
    struct id id;
    const struct hookset *set; /* borrowed; the caller holds a reference */
    struct slice request;      /* bytes as they came, borrowed */
    int64_t received_us;       /* wall clock */
    int64_t queue_us;          /* waited for a worker */
    int cancel_fd;             /* the client's socket, or -1 */

    /* Filled by `open`. `facts` is the template of each chain's record: who asked. */
    struct evaluation facts;
    struct json_value payload; /* the contract's payload or envelope */
    bool confidential;         /* its content stays out of records */
    struct tool_call tool;
    void *own; /* the contract's */

    /* Filled by `plan`. */
    struct chain *chains;
    size_t n_chains;

    const char *work_dir; /* where its private folder is made; NULL: TMPDIR */
    char *dir; /* private folder of this dispatch, made by dispatch_file(); NULL: none yet */
};

enum { DISPATCH_ARENA_BYTES = 64 * 1024 * 1024 }; /* one request, its copies, its hooks' output */

/* A new dispatch with a fresh id. `request` and `set` are borrowed until dispatch_done(). */
void dispatch_init(struct dispatch *d, const struct hookset *set, struct slice request);

/* Release everything, the private folder and its files included. */
void dispatch_done(struct dispatch *d);

/*
 * Write `bytes` to file `name` (no slash) in the dispatch's private folder (mode
 * 0700, in work_dir). *ret_path is in the arena.
 * Errors: ERR_IO.
 */
bool dispatch_file(struct dispatch *d, const char *name, struct slice bytes, const char **ret_path,
                   struct err *err) MUST_CHECK;

/* ---- The ops table -------------------------------------------------------- */

/* A row of the contract's own telemetry: a name and string dimensions. */
struct telemetry_row {
    int64_t time_us;
    const char *name;
    json_t *dimensions; /* object of strings; owned by the row until on_row returns */
};
typedef void (*on_telemetry_row)(void *ctx, const struct telemetry_row *row);

struct contract_ops {
    const char *name; /* as in the configuration and in records */

    /*
     * Read the hook definitions at src into set: hooks, own, definitions, and the
     * bytes for the digest (hookset_digest_add()). Every fault and warning goes to
     * *faults with its file and line; the caller refuses the set if there are errors.
     */
    void (*load)(const struct hook_source *src, struct hookset *set, struct faults *faults);

    /*
     * Read d->request: fill facts, payload, confidential, tool, own.
     * Errors: ERR_INVALID is a refusal; its text names the key or JSON pointer.
     */
    bool (*open)(struct dispatch *d, struct err *err) MUST_CHECK;

    /* Which hooks run, which not and why: fill d->chains. Never runs anything. */
    bool (*plan)(struct dispatch *d, struct err *err) MUST_CHECK;

    /* What the hook of a step gets. On failure the step is an `error` with CAUSE_INPUT. */
    bool (*input)(struct dispatch *d, const struct chain *chain, const struct step *step,
                  struct hook_input *ret, struct err *err) MUST_CHECK;

    /* What an outcome means. Never fails: the worst case is a verdict `error`. */
    void (*judge)(struct dispatch *d, const struct step *step, const struct outcome *outcome,
                  struct verdict *ret);

    /* Fold a verdict into the chain: decision, reason, allowing_hook, rejection_count. */
    enum fold_result (*fold)(struct dispatch *d, struct chain *chain, const struct step *step,
                             const struct verdict *verdict);

    /*
     * The result for the host, after all chains: bytes to *out, and the exit code that
     * `hooktrail dispatch` ends with. A contract whose host expects its own JSON writes that.
     */
    bool (*reply)(struct dispatch *d, struct buf *out, int *ret_exit_code, struct err *err)
        MUST_CHECK;

    /*
     * The same for an event that nobody could record in time where the operator chose
     * `on_unrecorded: deny`: refused, in the contract's words, if the event can be.
     */
    bool (*reply_unrecorded)(struct dispatch *d, struct buf *out, int *ret_exit_code,
                             struct err *err) MUST_CHECK;

    /* The rows of one evaluation, in order; NULL where the contract has no telemetry. */
    void (*telemetry)(const struct evaluation *e, on_telemetry_row on_row, void *ctx);
};

/* The contract called `name`; NULL when there is none. */
const struct contract_ops *contract_find(struct slice name);

/* Names for messages: "sre, oscova, deputyos" as far as they are built in. */
const char *contract_names(void);

/* Add bytes to the set's digest while it loads; each call is framed by its length. */
void hookset_digest_add(struct hookset *set, struct slice bytes);

/*
 * sre: the SRE agent's hook protocol (its document: "Hook Data Contract").
 *
 * What the files of this contract share; nobody outside includes it but
 * contract.c.
 *
 *     sre_load      documents ─▶ hooks            sre_result   a hook's stdout, read
 *     sre_check     warnings about matchers       sre_judge    an outcome's meaning
 *     sre_script    scripts ─▶ files              sre_fold     verdicts ─▶ a chain's decision
 *     sre_open      a request, read or refused    sre_reply    the result for the host
 *     sre_plan      who runs, who not, why        sre_telemetry  Application Insights rows
 *     sre_input     what a hook reads
 */
#pragma once

#include "collector/contract/contract.h"
#include "collector/contract/keys.h"

enum sre_event { SRE_NO_EVENT, SRE_START, SRE_PRE_TOOL_USE, SRE_POST_TOOL_USE, SRE_STOP };

enum {
    SRE_OUTPUT_BYTES = 1024 * 1024, /* of stdout, and of stderr */
    SRE_STDERR_TAIL_BYTES = 1024,   /* in a record */
    SRE_DRAIN_MS = 100,
    SRE_SCRIPT_BYTES = 64 * 1024,
};

/* The pipeline's own key of metadata: the hook that allowed a call. */
#define SRE_AGGREGATION_KEY "_aggregation.allowing_hook"

/* A reason that nobody gave. */
#define SRE_DEFAULT_REASON "Blocked by hook"

/* ---- Configuration -------------------------------------------------------- */

/* hook.own; in the set's arena. */
struct sre_hook {
    enum sre_event event;
    bool enabled;
    bool on_demand;
    struct slice agent;          /* of tier agent: the agent it is configured on */
    const struct slice *sources; /* of Start: none means every source */
    size_t n_sources;
    struct matcher *matcher; /* of tool events, owned by the set; NULL otherwise */
    const char *const *argv; /* of a command */
    struct slice prompt;     /* of a prompt */
    const char *model;       /* of a prompt; NULL: not configured */
    int64_t timeout_ms;
    bool fail_block;
    int64_t max_rejections; /* of a prompt on Stop */
};

/* A name as a payload spells it, or in any case; SRE_NO_EVENT: there is none. */
enum sre_event sre_event_from(struct slice name);
enum sre_event sre_event_from_any_case(struct slice name);
const char *sre_event_name(enum sre_event event);
bool sre_event_is_tool(enum sre_event event);

/* contract_ops.load. */
void sre_load(const struct hook_source *src, struct hookset *set, struct faults *faults);

/* Warn of the hook's matcher, which is a string, when it does not compile or is surely unmeant. */
void sre_check_matcher(const struct document *doc, const json_t *hook);

/* Which interpreter a script's first line names. */
enum sre_interpreter { SRE_NO_INTERPRETER, SRE_BASH, SRE_PYTHON };
enum sre_interpreter sre_script_interpreter(struct slice script);

/*
 * Store a script as a file named by its digest in `dir` (made with mode 0700), and
 * give the words that run it. *ret_argv is in the arena.
 */
bool sre_script_store(const char *dir, struct slice script, struct arena *a,
                      const char *const **ret_argv, struct err *err) MUST_CHECK;

/* ---- A dispatch ----------------------------------------------------------- */

/* dispatch.own. */
struct sre_request {
    enum sre_event event;
    struct json_value activated; /* list of names; kind NONE: none */
    struct json_value metadata;  /* carried from an earlier event; kind NONE: none */
    struct json_value summary;   /* execution_summary, in the payload's bytes */
    struct slice thread_source;
    int64_t stop_rejections;
    struct slice body; /* what every hook reads; made for the first */
};

/* contract_ops.open, .plan and .input. */
bool sre_open(struct dispatch *d, struct err *err) MUST_CHECK;
bool sre_plan(struct dispatch *d, struct err *err) MUST_CHECK;
bool sre_input(struct dispatch *d, const struct chain *chain, const struct step *step,
               struct hook_input *ret, struct err *err) MUST_CHECK;

/* ---- What a hook says ----------------------------------------------------- */

/* A HookResult, read; texts in the arena. */
struct sre_result {
    bool rejects;             /* ok is false, or the legacy decision is "block" */
    enum decision permission; /* ALLOW, DENY, ASK, or NONE */
    bool has_reason;          /* given and not empty */
    struct slice reason;
    struct slice question;      /* permissionDecisionReason */
    struct slice context;       /* additionalContext */
    struct json_value specific; /* hookSpecificOutput; kind NONE: none */
};

/*
 * Read stdout as a HookResult.
 * Errors: ERR_INVALID: no JSON object, a wrong type, an unknown permissionDecision.
 */
bool sre_result_parse(struct slice output, struct arena *a, struct sre_result *ret, struct err *err)
    MUST_CHECK;

/* What a result decides where permission decisions count. */
enum decision sre_result_decision(const struct sre_result *r);

/* What output that is no HookResult seems to have meant; DECISION_NONE: cannot be told. */
enum decision sre_result_guess(struct slice output);

/* verdict.own. */
struct sre_verdict {
    struct slice context;
    struct slice question;
    struct json_value specific; /* metadata of a passing hook */
    bool blocks;                /* an `error` that failMode turns into a rejection */
    bool not_run;               /* an `error` of a hook that nobody can run */
};

/* contract_ops.judge. */
void sre_judge(struct dispatch *d, const struct step *step, const struct outcome *outcome,
               struct verdict *ret);

/* ---- What becomes of it --------------------------------------------------- */

/* One key that a passing hook added; the first value of a key stays. */
struct sre_metadata {
    struct slice key;     /* its characters */
    struct slice raw_key; /* with quotes, as it came */
    struct slice value;   /* JSON as it came */
    struct sre_metadata *next;
    struct sre_metadata *next_in_slot;
};

enum {
    SRE_MAX_ACTIVATED = 1000, /* on-demand hooks of a request */
    SRE_MAX_NAME_BYTES = 4096 /* of a tool's name, which every matcher reads */
};
enum { SRE_METADATA_SLOTS = 1024 }; /* an output of 1 MiB has room for some ten thousand keys */

/* chain.own. */
struct sre_chain {
    struct slice context; /* the last one that is not empty */
    struct slice question;
    struct sre_metadata *metadata; /* in order of arrival */
    struct sre_metadata *last;
    struct sre_metadata **slots; /* by the key's hash; NULL: no metadata yet */
    struct slice allower;        /* the first hook that allowed */
    bool rejected;
    bool not_run;        /* some hook could not be run at all */
    struct slice excuse; /* why not */
    char *reasons;       /* joined by newlines; in the dispatch's arena */
    size_t reasons_len;
    size_t reasons_cap;
};

/* True when the chain carries a value for this key. */
bool sre_has_metadata(const struct sre_chain *chain, struct slice key);

/* contract_ops.fold, .reply, .reply_unrecorded and .telemetry. */
enum fold_result sre_fold(struct dispatch *d, struct chain *chain, const struct step *step,
                          const struct verdict *verdict);
bool sre_reply(struct dispatch *d, struct buf *out, int *ret_exit_code, struct err *err) MUST_CHECK;
bool sre_reply_unrecorded(struct dispatch *d, struct buf *out, int *ret_exit_code, struct err *err)
    MUST_CHECK;
void sre_telemetry(const struct evaluation *e, on_telemetry_row on_row, void *ctx);

extern const struct contract_ops contract_sre_ops;

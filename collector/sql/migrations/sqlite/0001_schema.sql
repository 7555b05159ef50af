-- The store: what the journals hold, in tables that answer questions.
--
-- migrations/postgres holds this schema's twin, with the same names. A
-- migration that has been released is never edited: a change is the next
-- number, and adds nullable columns only, so that a reader of the version
-- before goes on working.
--
--   hook_evaluation   one chain, what it decided              (record)
--   hook_execution    one hook that ran in it                 (derived)
--   tool_execution    a tool call's start or end              (record)
--   audit_record      hook_registry, gap, checkpoint, admin   (record)
--   position          the next sequence of each journal, moved in the
--                     transaction that stores its records: exactly once
--   *_minute          roll-ups, a row a journal; readers sum them
--
-- `time` and every *_us: microseconds, `time` since 1970 UTC. `leaf`: SHA-256
-- of a zero byte and the body. `body`: the record as it was journalled, byte
-- for byte. A NULL: not applicable.

CREATE TABLE schema_version (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at TEXT NOT NULL
) STRICT;

CREATE TABLE position (
    journal  TEXT PRIMARY KEY,
    next_seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE hook_evaluation (
    journal               TEXT NOT NULL,
    seq                   INTEGER NOT NULL,
    leaf                  BLOB NOT NULL,
    id                    TEXT NOT NULL,
    time                  INTEGER NOT NULL,
    collector             TEXT NOT NULL,
    dispatch_id           TEXT,
    source                TEXT,              -- dispatcher, host
    contract              TEXT,
    chain                 TEXT,              -- all, prompt, command
    duration_us           INTEGER,
    queue_us              INTEGER,
    thread_id             TEXT,
    run_id                TEXT,
    call_id               TEXT,
    user_id               TEXT,
    agent_name            TEXT,
    task_id               TEXT,
    task_run_id           TEXT,
    hook_event_type       TEXT,
    tool_name             TEXT,
    turn                  INTEGER,
    final_decision        TEXT,
    reason                TEXT,
    allowing_hook         TEXT,
    hooks_configured      INTEGER NOT NULL,
    hooks_run             INTEGER NOT NULL,
    system_hooks_run      INTEGER NOT NULL,
    agent_hooks_run       INTEGER NOT NULL,
    user_global_hooks_run INTEGER NOT NULL,
    rejection_count       INTEGER NOT NULL,
    config_digest         TEXT,
    body                  TEXT NOT NULL,
    -- Which record of which journal is this? (deadletter retry; a row that is there
    -- twice is a bug that this stops)
    PRIMARY KEY (journal, seq)
) STRICT;

-- What does the evaluation with this id say? (GET /v1/evaluations/{id})
CREATE INDEX hook_evaluation_id ON hook_evaluation (id);
-- What happened in this thread? (trace, why --thread, "ThreadId" in the view)
CREATE INDEX hook_evaluation_thread ON hook_evaluation (thread_id, time)
    WHERE thread_id IS NOT NULL;
-- Which hooks saw this tool call? (why --call)
CREATE INDEX hook_evaluation_call ON hook_evaluation (call_id) WHERE call_id IS NOT NULL;
-- What happened in this period? (why of neither thread nor call, retention)
CREATE INDEX hook_evaluation_time ON hook_evaluation (time);

CREATE TABLE hook_execution (
    journal         TEXT NOT NULL,
    seq             INTEGER NOT NULL,        -- of its evaluation
    ordinal         INTEGER NOT NULL,        -- its place in the evaluation's list
    leaf            BLOB NOT NULL,           -- of its evaluation
    id              TEXT NOT NULL,           -- the evaluation's, a dot, the ordinal
    time            INTEGER NOT NULL,        -- of its evaluation
    source          TEXT,
    contract        TEXT,
    thread_id       TEXT,
    call_id         TEXT,
    agent_name      TEXT,
    hook_event_type TEXT,
    tool_name       TEXT,
    final_decision  TEXT,                    -- of its evaluation
    hook_name       TEXT NOT NULL,
    hook_type       TEXT,                    -- command, http, prompt
    tier            TEXT,                    -- system, agent, user-global
    decision        TEXT,
    reason          TEXT,
    exception_type  TEXT,
    cause           TEXT,
    intended        TEXT,
    exit_code       INTEGER,
    signal          INTEGER,
    queue_us        INTEGER,
    duration_us     INTEGER NOT NULL,
    left_behind     INTEGER NOT NULL,
    body            TEXT NOT NULL,
    -- Which hooks ran in this evaluation? (retention takes them along)
    PRIMARY KEY (journal, seq, ordinal)
) STRICT;

-- Which hooks of this thread did more than pass? ("ThreadId" in the view)
CREATE INDEX hook_execution_thread ON hook_execution (thread_id, time)
    WHERE decision <> 'pass' AND thread_id IS NOT NULL;

CREATE TABLE tool_execution (
    journal        TEXT NOT NULL,
    seq            INTEGER NOT NULL,
    leaf           BLOB NOT NULL,
    id             TEXT NOT NULL,
    time           INTEGER NOT NULL,
    collector      TEXT NOT NULL,
    dispatch_id    TEXT,
    source         TEXT,
    contract       TEXT,
    phase          TEXT,                     -- start, end
    thread_id      TEXT,
    call_id        TEXT,
    tool_name      TEXT,
    sub_agent_name TEXT,
    tool_succeeded INTEGER,                  -- 0, 1
    body           TEXT NOT NULL,
    -- Which record of which journal is this?
    PRIMARY KEY (journal, seq)
) STRICT;

-- Which tools did this thread call? (trace, "ThreadId" in the view)
CREATE INDEX tool_execution_thread ON tool_execution (thread_id, time)
    WHERE thread_id IS NOT NULL;
-- When did this call start and end? (why --call)
CREATE INDEX tool_execution_call ON tool_execution (call_id) WHERE call_id IS NOT NULL;
-- What is older than this? (retention)
CREATE INDEX tool_execution_time ON tool_execution (time);

CREATE TABLE audit_record (
    journal       TEXT NOT NULL,
    seq           INTEGER NOT NULL,
    leaf          BLOB NOT NULL,
    id            TEXT NOT NULL,
    time          INTEGER NOT NULL,
    collector     TEXT NOT NULL,
    type          TEXT NOT NULL,             -- the record's own word
    contract      TEXT,                      -- hook_registry
    config_digest TEXT,                      -- hook_registry
    action        TEXT,                      -- admin
    actor         TEXT,                      -- admin
    cause         TEXT,                      -- gap
    lost          INTEGER,                   -- gap; NULL: how many is not known
    body          TEXT NOT NULL,
    -- Which record of which journal is this?
    PRIMARY KEY (journal, seq)
) STRICT;

-- Which hooks were in force then? Was anything lost? (why, trace)
CREATE INDEX audit_record_type ON audit_record (type, time);
-- What is older than this? (retention)
CREATE INDEX audit_record_time ON audit_record (time);

-- A histogram's d_X counts durations up to X and over the column before it
-- (collector/sql/histogram.h); a hook that was skipped has none.

-- How many chains, how decided, how slow, by the minute?
CREATE TABLE evaluation_minute (
    minute          INTEGER NOT NULL,        -- since 1970 UTC
    journal         TEXT NOT NULL,
    contract        TEXT NOT NULL,           -- '': not applicable, here and below
    hook_event_type TEXT NOT NULL,
    tool_name       TEXT NOT NULL,
    decision        TEXT NOT NULL,
    n               INTEGER NOT NULL,
    duration_us     INTEGER NOT NULL,        -- sum
    duration_max_us INTEGER NOT NULL,
    d_100us INTEGER NOT NULL, d_1ms   INTEGER NOT NULL, d_2ms   INTEGER NOT NULL,
    d_5ms   INTEGER NOT NULL, d_10ms  INTEGER NOT NULL, d_20ms  INTEGER NOT NULL,
    d_50ms  INTEGER NOT NULL, d_100ms INTEGER NOT NULL, d_200ms INTEGER NOT NULL,
    d_500ms INTEGER NOT NULL, d_1s    INTEGER NOT NULL, d_2s    INTEGER NOT NULL,
    d_5s    INTEGER NOT NULL, d_10s   INTEGER NOT NULL, d_30s   INTEGER NOT NULL,
    d_more  INTEGER NOT NULL,
    PRIMARY KEY (minute, journal, contract, hook_event_type, tool_name, decision)
) STRICT, WITHOUT ROWID;

-- How often did each hook run, block, fail, get skipped, and why, by the minute?
CREATE TABLE hook_minute (
    minute          INTEGER NOT NULL,
    journal         TEXT NOT NULL,
    contract        TEXT NOT NULL,
    hook_event_type TEXT NOT NULL,
    tool_name       TEXT NOT NULL,
    hook_name       TEXT NOT NULL,
    tier            TEXT NOT NULL,
    decision        TEXT NOT NULL,
    skip_reason     TEXT NOT NULL,
    cause           TEXT NOT NULL,
    n               INTEGER NOT NULL,
    duration_us     INTEGER NOT NULL,
    duration_max_us INTEGER NOT NULL,
    d_100us INTEGER NOT NULL, d_1ms   INTEGER NOT NULL, d_2ms   INTEGER NOT NULL,
    d_5ms   INTEGER NOT NULL, d_10ms  INTEGER NOT NULL, d_20ms  INTEGER NOT NULL,
    d_50ms  INTEGER NOT NULL, d_100ms INTEGER NOT NULL, d_200ms INTEGER NOT NULL,
    d_500ms INTEGER NOT NULL, d_1s    INTEGER NOT NULL, d_2s    INTEGER NOT NULL,
    d_5s    INTEGER NOT NULL, d_10s   INTEGER NOT NULL, d_30s   INTEGER NOT NULL,
    d_more  INTEGER NOT NULL,
    PRIMARY KEY (minute, journal, contract, hook_event_type, tool_name, hook_name, tier,
                 decision, skip_reason, cause)
) STRICT, WITHOUT ROWID;

-- The SRE contract's telemetry, under its names and rules: a chain has a row
-- when a hook ran, and none when it was cancelled, interrupted or could not be
-- run; a hook has a row unless it passed. Hook rows have no CallId.

CREATE VIEW "AgentHookEvaluation" AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', time / 1000000, 'unixepoch')
           || printf('.%06dZ', time % 1000000) AS "timestamp",
       thread_id             AS "ThreadId",
       hook_event_type       AS "HookEventType",
       tool_name             AS "ToolName",
       agent_name            AS "AgentName",
       final_decision        AS "FinalDecision",
       hooks_configured      AS "HooksConfigured",
       hooks_run             AS "HooksRun",
       system_hooks_run      AS "SystemHooksRun",
       agent_hooks_run       AS "AgentHooksRun",
       user_global_hooks_run AS "UserGlobalHooksRun",
       allowing_hook         AS "AllowingHook",
       rejection_count       AS "RejectionCount",
       duration_us / 1000    AS "DurationMs"
FROM hook_evaluation
WHERE contract = 'sre' AND hooks_run > 0
  AND final_decision IN ('pass', 'allow', 'reject', 'deny', 'ask');

CREATE VIEW "AgentHookExecution" AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', time / 1000000, 'unixepoch')
           || printf('.%06dZ', time % 1000000) AS "timestamp",
       thread_id          AS "ThreadId",
       hook_name          AS "HookName",
       hook_type          AS "HookType",
       hook_event_type    AS "HookEventType",
       tier               AS "Tier",
       tool_name          AS "ToolName",
       agent_name         AS "AgentName",
       decision           AS "Decision",
       reason             AS "Reason",
       exception_type     AS "ExceptionType",
       duration_us / 1000 AS "DurationMs"
FROM hook_execution
WHERE contract = 'sre' AND decision <> 'pass'
  AND decision IN ('allow', 'reject', 'deny', 'ask', 'error')
  AND final_decision IN ('pass', 'allow', 'reject', 'deny', 'ask');

CREATE VIEW "AgentToolExecution" AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', time / 1000000, 'unixepoch')
           || printf('.%06dZ', time % 1000000) AS "timestamp",
       thread_id                              AS "ThreadId",
       phase                                  AS "EventType",
       tool_name                              AS "ToolName",
       sub_agent_name                         AS "SubAgentName",
       call_id                                AS "CallId",
       json_extract(body, '$.tool_input')     AS "ToolInput",
       json_extract(body, '$.tool_output')    AS "ToolOutput",
       json_extract(body, '$.skills_loaded')  AS "SkillsLoaded",
       json_extract(body, '$.skill_source')   AS "SkillSource"
FROM tool_execution
WHERE contract = 'sre';

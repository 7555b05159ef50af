-- The store: what the journals hold, in tables that answer questions.
--
-- migrations/sqlite holds this schema's twin, with the same names; see there how
-- a migration is added. What differs: the four record tables are cut into a
-- partition a day, so that retention drops a day at once. `day` is the record's
-- own, or the nearest that is kept or made ahead, where its clock was far off;
-- `time` always is the record's.
--
--   hook_evaluation   one chain, what it decided              (record)
--   hook_execution    one hook that ran in it                 (derived)
--   tool_execution    a tool call's start or end              (record)
--   audit_record      hook_registry, gap, checkpoint, admin   (record)
--   position          the next sequence of each journal, moved in the
--                     transaction that stores its records: exactly once
--   *_minute          roll-ups, a row a journal; readers sum them
--
-- Every *_us: microseconds. `leaf`: SHA-256 of a zero byte and the body. `body`:
-- the record as it was journalled, byte for byte (json keeps the text; jsonb would
-- not). A NULL: not applicable.

CREATE TABLE schema_version (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE position (
    journal  text PRIMARY KEY,
    next_seq bigint NOT NULL
);

-- A loader's positions: where it goes on in each partition of a topic, and the
-- last sequence it has of each journal there, by which a resend is dropped.
CREATE TABLE kafka_offset (
    topic       text NOT NULL,
    partition   bigint NOT NULL,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
);

CREATE TABLE kafka_position (
    journal   text NOT NULL,
    topic     text NOT NULL,
    partition bigint NOT NULL,
    last_seq  bigint NOT NULL,
    PRIMARY KEY (journal, topic, partition)
);

CREATE TABLE hook_evaluation (
    day                   date NOT NULL,
    journal               text NOT NULL,
    seq                   bigint NOT NULL,
    leaf                  bytea NOT NULL,
    id                    text NOT NULL,
    time                  timestamptz NOT NULL,
    collector             text NOT NULL,
    dispatch_id           text,
    source                text,              -- dispatcher, host
    contract              text,
    chain                 text,              -- all, prompt, command
    duration_us           bigint,
    queue_us              bigint,
    thread_id             text,
    run_id                text,
    call_id               text,
    user_id               text,
    agent_name            text,
    task_id               text,
    task_run_id           text,
    hook_event_type       text,
    tool_name             text,
    turn                  bigint,
    final_decision        text,
    reason                text,
    allowing_hook         text,
    hooks_configured      bigint NOT NULL,
    hooks_run             bigint NOT NULL,
    system_hooks_run      bigint NOT NULL,
    agent_hooks_run       bigint NOT NULL,
    user_global_hooks_run bigint NOT NULL,
    rejection_count       bigint NOT NULL,
    config_digest         text,
    body                  json NOT NULL,
    -- Which record of which journal is this? (deadletter retry; a row that is there
    -- twice is a bug that this stops)
    PRIMARY KEY (day, journal, seq)
) PARTITION BY RANGE (day);

-- What does the evaluation with this id say? (GET /v1/evaluations/{id})
CREATE INDEX hook_evaluation_id ON hook_evaluation (id);
-- What happened in this thread? (trace, why --thread, "ThreadId" in the view)
CREATE INDEX hook_evaluation_thread ON hook_evaluation (thread_id, time)
    WHERE thread_id IS NOT NULL;
-- Which hooks saw this tool call? (why --call)
CREATE INDEX hook_evaluation_call ON hook_evaluation (call_id) WHERE call_id IS NOT NULL;
-- What happened in this period? (why of neither thread nor call, the loader's look
-- for what was sent again)
CREATE INDEX hook_evaluation_time ON hook_evaluation (time);

CREATE TABLE hook_execution (
    day             date NOT NULL,
    journal         text NOT NULL,
    seq             bigint NOT NULL,        -- of its evaluation
    ordinal         bigint NOT NULL,        -- its place in the evaluation's list
    leaf            bytea NOT NULL,           -- of its evaluation
    id              text NOT NULL,           -- the evaluation's, a dot, the ordinal
    time            timestamptz NOT NULL,        -- of its evaluation
    source          text,
    contract        text,
    thread_id       text,
    call_id         text,
    agent_name      text,
    hook_event_type text,
    tool_name       text,
    final_decision  text,                    -- of its evaluation
    hook_name       text NOT NULL,
    hook_type       text,                    -- command, http, prompt
    tier            text,                    -- system, agent, user-global
    decision        text,
    reason          text,
    exception_type  text,
    cause           text,
    intended        text,
    exit_code       bigint,
    signal          bigint,
    queue_us        bigint,
    duration_us     bigint NOT NULL,
    left_behind     bigint NOT NULL,
    body            json NOT NULL,
    -- Which hook of which evaluation is this?
    PRIMARY KEY (day, journal, seq, ordinal)
) PARTITION BY RANGE (day);

-- Which hooks of this thread did more than pass? ("ThreadId" in the view)
CREATE INDEX hook_execution_thread ON hook_execution (thread_id, time)
    WHERE decision <> 'pass' AND thread_id IS NOT NULL;

CREATE TABLE tool_execution (
    day            date NOT NULL,
    journal        text NOT NULL,
    seq            bigint NOT NULL,
    leaf           bytea NOT NULL,
    id             text NOT NULL,
    time           timestamptz NOT NULL,
    collector      text NOT NULL,
    dispatch_id    text,
    source         text,
    contract       text,
    phase          text,                     -- start, end
    thread_id      text,
    call_id        text,
    tool_name      text,
    sub_agent_name text,
    tool_succeeded bigint,                  -- 0, 1
    body           json NOT NULL,
    -- Which record of which journal is this?
    PRIMARY KEY (day, journal, seq)
) PARTITION BY RANGE (day);

-- Which tools did this thread call? (trace, "ThreadId" in the view)
CREATE INDEX tool_execution_thread ON tool_execution (thread_id, time)
    WHERE thread_id IS NOT NULL;
-- When did this call start and end? (why --call)
CREATE INDEX tool_execution_call ON tool_execution (call_id) WHERE call_id IS NOT NULL;
-- What happened in this period? (the loader's look for what was sent again)
CREATE INDEX tool_execution_time ON tool_execution (time);

CREATE TABLE audit_record (
    day           date NOT NULL,
    journal       text NOT NULL,
    seq           bigint NOT NULL,
    leaf          bytea NOT NULL,
    id            text NOT NULL,
    time          timestamptz NOT NULL,
    collector     text NOT NULL,
    type          text NOT NULL,             -- the record's own word
    contract      text,                      -- hook_registry
    config_digest text,                      -- hook_registry
    action        text,                      -- admin
    actor         text,                      -- admin
    cause         text,                      -- gap
    lost          bigint,                   -- gap; NULL: how many is not known
    body          json NOT NULL,
    -- Which record of which journal is this?
    PRIMARY KEY (day, journal, seq)
) PARTITION BY RANGE (day);

-- Which hooks were in force then? Was anything lost? (why, trace)
CREATE INDEX audit_record_type ON audit_record (type, time);
-- What happened in this period? (the loader's look for what was sent again)
CREATE INDEX audit_record_time ON audit_record (time);

-- A histogram's d_X counts durations up to X and over the column before it
-- (collector/sql/histogram.h); a hook that was skipped has none.

-- How many chains, how decided, how slow, by the minute?
CREATE TABLE evaluation_minute (
    minute          bigint NOT NULL,        -- since 1970 UTC
    journal         text NOT NULL,
    contract        text NOT NULL,           -- '': not applicable, here and below
    hook_event_type text NOT NULL,
    tool_name       text NOT NULL,
    decision        text NOT NULL,
    n               bigint NOT NULL,
    duration_us     bigint NOT NULL,        -- sum
    duration_max_us bigint NOT NULL,
    d_100us bigint NOT NULL, d_1ms   bigint NOT NULL, d_2ms   bigint NOT NULL,
    d_5ms   bigint NOT NULL, d_10ms  bigint NOT NULL, d_20ms  bigint NOT NULL,
    d_50ms  bigint NOT NULL, d_100ms bigint NOT NULL, d_200ms bigint NOT NULL,
    d_500ms bigint NOT NULL, d_1s    bigint NOT NULL, d_2s    bigint NOT NULL,
    d_5s    bigint NOT NULL, d_10s   bigint NOT NULL, d_30s   bigint NOT NULL,
    d_more  bigint NOT NULL,
    PRIMARY KEY (minute, journal, contract, hook_event_type, tool_name, decision)
);

-- How often did each hook run, block, fail, get skipped, and why, by the minute?
CREATE TABLE hook_minute (
    minute          bigint NOT NULL,
    journal         text NOT NULL,
    contract        text NOT NULL,
    hook_event_type text NOT NULL,
    tool_name       text NOT NULL,
    hook_name       text NOT NULL,
    tier            text NOT NULL,
    decision        text NOT NULL,
    skip_reason     text NOT NULL,
    cause           text NOT NULL,
    n               bigint NOT NULL,
    duration_us     bigint NOT NULL,
    duration_max_us bigint NOT NULL,
    d_100us bigint NOT NULL, d_1ms   bigint NOT NULL, d_2ms   bigint NOT NULL,
    d_5ms   bigint NOT NULL, d_10ms  bigint NOT NULL, d_20ms  bigint NOT NULL,
    d_50ms  bigint NOT NULL, d_100ms bigint NOT NULL, d_200ms bigint NOT NULL,
    d_500ms bigint NOT NULL, d_1s    bigint NOT NULL, d_2s    bigint NOT NULL,
    d_5s    bigint NOT NULL, d_10s   bigint NOT NULL, d_30s   bigint NOT NULL,
    d_more  bigint NOT NULL,
    PRIMARY KEY (minute, journal, contract, hook_event_type, tool_name, hook_name, tier,
                 decision, skip_reason, cause)
);

-- The SRE contract's telemetry, under its names and rules: a chain has a row
-- when a hook ran, and none when it was cancelled, interrupted or could not be
-- run; a hook has a row unless it passed. Hook rows have no CallId.

CREATE VIEW "AgentHookEvaluation" AS
SELECT time                  AS "timestamp",
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
SELECT time               AS "timestamp",
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
SELECT time                     AS "timestamp",
       thread_id                AS "ThreadId",
       phase                    AS "EventType",
       tool_name                AS "ToolName",
       sub_agent_name           AS "SubAgentName",
       call_id                  AS "CallId",
       body ->> 'tool_input'    AS "ToolInput",
       body ->> 'tool_output'   AS "ToolOutput",
       body ->> 'skills_loaded' AS "SkillsLoaded",
       body ->> 'skill_source'  AS "SkillSource"
FROM tool_execution
WHERE contract = 'sre';

-- The partition of one day, made where it is missing. LIKE and ATTACH, not PARTITION
-- OF: attaching lets readers and writers of the other days go on. A check that
-- says what the bounds will say saves the scan. Several may call at once: the
-- lock lets one make it, and the others look into the catalogue itself, since a
-- name that to_regclass() has missed once it may go on to miss.
CREATE FUNCTION hooktrail_make_day(of_table text, of_day date) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    name text := of_table || '_' || to_char(of_day, 'YYYYMMDD');
BEGIN
    IF to_regclass(quote_ident(name)) IS NOT NULL THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('hooktrail_make_day'));
    PERFORM FROM pg_class parent JOIN pg_class part USING (relnamespace)
    WHERE parent.oid = of_table::regclass AND part.relname = name;
    IF FOUND THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS, '
                   'CONSTRAINT of_day CHECK (day = %L))', name, of_table, of_day);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                   of_table, name, of_day, of_day + 1);
    EXECUTE format('ALTER TABLE %I DROP CONSTRAINT of_day', name);
    RETURN true;
END $$;

-- The partitions of days before a date, of the tables that hold records. One that
-- somebody made by hand, with no day in its name, is left alone.
CREATE FUNCTION hooktrail_days_before(before date)
RETURNS TABLE (of_table text, name text, of_day date)
LANGUAGE sql STABLE AS $$
    SELECT * FROM (
        SELECT parent.relname::text, part.relname::text,
               CASE WHEN part.relname ~ '_[0-9]{8}$'
                    THEN to_date(right(part.relname, 8), 'YYYYMMDD') END AS of_day
        FROM pg_inherits i
        JOIN pg_class parent ON parent.oid = i.inhparent
        JOIN pg_class part ON part.oid = i.inhrelid
        WHERE parent.oid IN ('hook_evaluation'::regclass, 'hook_execution'::regclass,
                             'tool_execution'::regclass, 'audit_record'::regclass)) AS made
    WHERE made.of_day < before
$$;

-- Retention goes day by day, so that no statement has more to do than one day's, however
-- much has piled up. The oldest day before a date, and how many records it has; no row
-- where there is none.
CREATE FUNCTION hooktrail_oldest_day(before date) RETURNS TABLE (of_day date, n bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    part record;
    of_part bigint;
BEGIN
    SELECT min(d.of_day), 0 INTO of_day, n FROM hooktrail_days_before(before) AS d;
    FOR part IN SELECT * FROM hooktrail_days_before(of_day + 1) AS d
                WHERE d.of_table <> 'hook_execution' LOOP
        EXECUTE format('SELECT count(*) FROM %I', part.name) INTO of_part;
        n := n + of_part;
    END LOOP;
    IF of_day IS NOT NULL THEN
        RETURN NEXT;
    END IF;
END $$;

-- Detach and drop one day, with the roll-ups up to its end: they are filed where their
-- records are. Several may call at once: the others find it gone.
CREATE FUNCTION hooktrail_drop_day(which date) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    part record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('hooktrail_drop_day'));
    FOR part IN SELECT * FROM hooktrail_days_before(which + 1) WHERE of_day = which LOOP
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', part.of_table, part.name);
        EXECUTE format('DROP TABLE %I', part.name);
    END LOOP;
    DELETE FROM evaluation_minute WHERE minute < (which + 1 - date '1970-01-01') * 1440;
    DELETE FROM hook_minute WHERE minute < (which + 1 - date '1970-01-01') * 1440;
END $$;

-- Who reads gets SELECT, and nothing that is made later is forgotten. The role is
-- made by whoever runs the server (deploy/postgres-roles.sql); without it, nothing.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'hooktrail_reader') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO hooktrail_reader', current_schema());
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO hooktrail_reader',
                       current_schema());
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I GRANT SELECT ON TABLES '
                       'TO hooktrail_reader', current_schema());
    END IF;
END $$;

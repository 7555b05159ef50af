-- Roles for a shared store. Run by a superuser, before the first `hooktrail ship` or at any time
-- after it, and again whenever somebody else has made tables of ours or the passwords change:
--
--     psql -f postgres-roles.sql -v writer_password=… -v reader_password=… -d DATABASE
--
-- hooktrail_writer: `hooktrail ship` connects with it. It makes the tables, and
--   owns them, those that are there already too; it needs nothing beyond this database.
-- hooktrail_reader: `hooktrail serve`, `trace` and `why`, and people's own SQL.
--
-- The tables are looked for in the first schema of the search path, as `ship` makes them there.
\set ON_ERROR_STOP on
\set VERBOSITY terse
\set QUIET on
\if :{?writer_password}
\else
    \set missing writer_password
\endif
\if :{?reader_password}
\else
    \set missing reader_password
\endif
\if :{?missing}
    \warn postgres-roles.sql: give both passwords: -v writer_password=… -v reader_password=…
    DO $$ BEGIN RAISE 'nothing was done'; END $$;
\endif

BEGIN;
SELECT format('CREATE ROLE %I LOGIN', name)
FROM unnest(ARRAY['hooktrail_writer', 'hooktrail_reader']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
ALTER ROLE hooktrail_writer PASSWORD :'writer_password';
ALTER ROLE hooktrail_reader PASSWORD :'reader_password';
ALTER ROLE hooktrail_reader SET default_transaction_read_only = on;

-- The writer counts in temporary tables. Of a fresh database everybody may do both anyway.
SELECT current_database() AS database, current_schema() AS schema \gset
GRANT CONNECT, TEMPORARY ON DATABASE :"database" TO hooktrail_writer;
GRANT CONNECT ON DATABASE :"database" TO hooktrail_reader;
GRANT CREATE, USAGE ON SCHEMA :"schema" TO hooktrail_writer;
GRANT USAGE ON SCHEMA :"schema" TO hooktrail_reader;
ALTER DEFAULT PRIVILEGES FOR ROLE hooktrail_writer IN SCHEMA :"schema"
    GRANT SELECT ON TABLES TO hooktrail_reader;

-- What is there already: our tables, their days, our views and functions, nothing of others.
SELECT format('ALTER TABLE %1$s OWNER TO hooktrail_writer; '
              'GRANT SELECT ON %1$s TO hooktrail_reader', oid::regclass)
FROM pg_class
WHERE relnamespace = :'schema'::regnamespace AND relkind IN ('r', 'p', 'v')
  AND (relname IN ('schema_version', 'position', 'kafka_offset', 'kafka_position',
                   'evaluation_minute', 'hook_minute',
                   'AgentHookEvaluation', 'AgentHookExecution', 'AgentToolExecution')
       OR relname ~ '^(hook_evaluation|hook_execution|tool_execution|audit_record)(_\d{8})?$')
\gexec
SELECT format('ALTER FUNCTION %s OWNER TO hooktrail_writer', oid::regprocedure)
FROM pg_proc
WHERE pronamespace = :'schema'::regnamespace AND proname ~ '^hooktrail_'
\gexec
COMMIT;

-- Roles for a shared store, run once by whoever administers the server:
--
--     psql -f postgres-roles.sql -v writer_password=… -v reader_password=… DATABASE
--
-- hooktrail_writer: `hooktrail ship` connects with it. It makes the tables, and
--   owns them; it needs nothing beyond this database.
-- hooktrail_reader: `hooktrail serve`, `trace` and `why`, and people's own SQL.
CREATE ROLE hooktrail_writer LOGIN PASSWORD :'writer_password';
CREATE ROLE hooktrail_reader LOGIN PASSWORD :'reader_password';
GRANT CREATE, USAGE ON SCHEMA public TO hooktrail_writer;
GRANT USAGE ON SCHEMA public TO hooktrail_reader;
ALTER ROLE hooktrail_reader SET default_transaction_read_only = on;

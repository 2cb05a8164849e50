-- The rights of the counter: read the views that it counts from, and write its counts. It cannot change the record.
REVOKE ALL ON ALL TABLES IN SCHEMA kuberewind FROM kuberewind_counter;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA kuberewind FROM kuberewind_counter;
REVOKE ALL ON SCHEMA kuberewind FROM kuberewind_counter;
GRANT USAGE ON SCHEMA kuberewind TO kuberewind_counter;
GRANT EXECUTE ON FUNCTION kuberewind.schema_version() TO kuberewind_counter;
GRANT SELECT ON
    kuberewind.record_deltas, kuberewind.record_days, kuberewind.record_lives, kuberewind.record_ends, kuberewind.record_streams, kuberewind.record_activity,
    kuberewind.prunes, kuberewind.erasures
    TO kuberewind_counter;
-- DELETE needs SELECT to find its rows.
GRANT SELECT, INSERT, DELETE ON kuberewind.activity TO kuberewind_counter;

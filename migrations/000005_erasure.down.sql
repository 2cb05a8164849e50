DROP VIEW kuberewind.erasures, kuberewind.clock_steps;
DROP TABLE kuberewind.clock_steps_data, kuberewind.erased_deltas, kuberewind.erasures_data;
ALTER TABLE kuberewind.streams DROP COLUMN schema;
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 4;
COMMENT ON SCHEMA kuberewind IS 'Every change of every object of the recorded Kubernetes clusters. Read the views deltas, changes, objects, gaps, pauses, prunes, coverage and server, and call the functions object_at, snapshot_at and history; \d+ and \df+ explain them.';
COMMENT ON COLUMN kuberewind.gaps_data.cause IS 'Why: first_list, expired, forbidden, unauthorized, not_found, undecodable, history_reversed, configuration, schema, overflow, unreachable.';
COMMENT ON COLUMN kuberewind.record_gaps.cause IS 'Why: first_list, expired, forbidden, unauthorized, not_found, undecodable, history_reversed, configuration, schema, overflow, unreachable.';
COMMENT ON COLUMN kuberewind.gaps.cause IS 'Why: first_list, expired, forbidden, unauthorized, not_found, undecodable, history_reversed, configuration, schema, overflow, unreachable.';

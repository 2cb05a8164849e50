DROP VIEW kuberewind.coverage;
ALTER VIEW kuberewind.record_coverage RENAME TO coverage;
DROP FUNCTION kuberewind.record_points(integer, integer[], timestamptz, bigint, text);
ALTER FUNCTION kuberewind.record_points_of(integer, integer[], timestamptz, bigint, text) RENAME TO record_points;
DROP FUNCTION kuberewind.prune_rest(), kuberewind.prune_day(date, text), kuberewind.prune_obstacle(date, boolean);
DROP VIEW kuberewind.record_partitions, kuberewind.record_horizons, kuberewind.record_prunes, kuberewind.record_sweeps, kuberewind.prunes;
DROP TABLE kuberewind.prunes_data, kuberewind.sweeps;
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 3;
COMMENT ON SCHEMA kuberewind IS 'Every change of every object of the recorded Kubernetes clusters. Read the views deltas, changes, objects, gaps, pauses, coverage and server, and call the functions object_at, snapshot_at and history; \d+ and \df+ explain them.';
DO $$
BEGIN
    COMMENT ON VIEW kuberewind.coverage IS 'What the record holds whole, and what not and why: of each resource its complete stretches, and between them the stretches in which versions may have been missed. Pauses are no holes: what happened in them was caught up on (see pauses).';
    COMMENT ON FUNCTION kuberewind.record_points(integer, integer[], timestamptz, bigint, text) IS 'For the functions of this schema, and not a contract: which deltas of each stream belong to an instant, with warnings of gaps, pauses and the ends of the record.';
END $$;

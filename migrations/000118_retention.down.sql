DROP VIEW kuberewind.coverage;
DROP FUNCTION kuberewind.record_points(integer, integer[], timestamptz, bigint, text),
    kuberewind.prune_rest(), kuberewind.prune_day(date, text), kuberewind.prune_obstacle(date, boolean), kuberewind.prune_obstacle_of(integer, date);
DROP VIEW kuberewind.record_partitions, kuberewind.record_horizons, kuberewind.record_prunes, kuberewind.record_sweeps, kuberewind.prunes;
DROP TABLE kuberewind.prunes_data, kuberewind.sweeps;
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 117;

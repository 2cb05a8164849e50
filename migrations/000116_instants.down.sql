DROP FUNCTION kuberewind.record_observed_at(integer, bigint, timestamptz, timestamptz),
    kuberewind.record_points_of(integer, integer[], timestamptz, bigint, text), kuberewind.record_seq_at(integer, timestamptz),
    kuberewind.record_instant(text), kuberewind.record_streams_of(integer, text, text, text, boolean), kuberewind.record_cluster(text);
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 115;

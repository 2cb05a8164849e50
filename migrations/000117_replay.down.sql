DROP FUNCTION kuberewind.object_at(text, text, text, text, text, timestamptz), kuberewind.object_at(text, text, text, text, text, text),
    kuberewind.snapshot_at(text, timestamptz, text, text, text), kuberewind.snapshot_at(text, text, text, text, text),
    kuberewind.history(text, text, text, text, text, timestamptz, timestamptz), kuberewind.history(text, text, text, text, text, text, text),
    kuberewind.record_object_at(integer, text, text, text, text, timestamptz, bigint, text),
    kuberewind.record_snapshot_at(integer, text, text, text, timestamptz, bigint, text),
    kuberewind.record_history(integer, text, text, text, text, timestamptz, bigint, text, timestamptz, bigint, text),
    kuberewind.record_version(jsonb, bigint, text, jsonb, json),
    kuberewind.record_fold(integer, bigint[], bigint, bigint, timestamptz, text, bigint);
DROP TYPE kuberewind.snapshot;
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 116;

DROP FUNCTION kuberewind.object_at(text, text, text, text, text, timestamptz), kuberewind.object_at(text, text, text, text, text, text),
    kuberewind.snapshot_at(text, timestamptz, text, text, text), kuberewind.snapshot_at(text, text, text, text, text),
    kuberewind.history(text, text, text, text, text, timestamptz, timestamptz), kuberewind.history(text, text, text, text, text, text, text),
    kuberewind.record_object_at(integer, text, text, text, text, timestamptz, bigint, text),
    kuberewind.record_snapshot_at(integer, text, text, text, timestamptz, bigint, text),
    kuberewind.record_history(integer, text, text, text, text, timestamptz, bigint, text, timestamptz, bigint, text),
    kuberewind.record_version(jsonb, bigint, text, jsonb, json),
    kuberewind.record_fold(integer, bigint[], bigint, bigint, timestamptz, text, bigint),
    kuberewind.record_observed_at(integer, bigint, timestamptz, timestamptz),
    kuberewind.record_points_of(integer, integer[], timestamptz, bigint, text), kuberewind.record_seq_at(integer, timestamptz),
    kuberewind.record_instant(text), kuberewind.record_streams_of(integer, text, text, text, boolean), kuberewind.record_cluster(text),
    kuberewind.apply_patch(jsonb, jsonb), kuberewind.record_tokens(jsonb, text);
DROP TYPE kuberewind.snapshot;
DROP VIEW kuberewind.record_clusters, kuberewind.record_heads, kuberewind.record_epochs, kuberewind.record_streams, kuberewind.record_lives, kuberewind.record_ends,
    kuberewind.record_living, kuberewind.record_exclusions, kuberewind.record_standbys, kuberewind.record_deltas, kuberewind.record_batches, kuberewind.record_days, kuberewind.record_gaps,
    kuberewind.record_pauses, kuberewind.record_server, kuberewind.record_checkpoints, kuberewind.record_checkpoint_blocks;
DROP TABLE kuberewind.checkpoint_blocks, kuberewind.checkpoints;
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 101;

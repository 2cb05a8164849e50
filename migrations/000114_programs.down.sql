DROP VIEW kuberewind.record_clusters, kuberewind.record_heads, kuberewind.record_epochs, kuberewind.record_streams, kuberewind.record_lives, kuberewind.record_ends,
    kuberewind.record_living, kuberewind.record_exclusions, kuberewind.record_standbys, kuberewind.record_deltas, kuberewind.record_batches, kuberewind.record_days, kuberewind.record_gaps,
    kuberewind.record_pauses, kuberewind.record_server, kuberewind.record_checkpoints, kuberewind.record_checkpoint_blocks;
DROP TABLE kuberewind.checkpoint_blocks, kuberewind.checkpoints;
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 113;

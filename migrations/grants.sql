-- The rights of the writer and the auditor. The same transaction first revokes the rights that are not listed here.
DO $$
DECLARE
    relation regclass;
    routine  regprocedure;
BEGIN
    FOR relation IN
        SELECT DISTINCT held.oid
        FROM (
            SELECT oid, relacl AS acl FROM pg_catalog.pg_class WHERE relnamespace = 'kuberewind'::regnamespace
            UNION ALL
            SELECT c.oid, a.attacl FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = 'kuberewind'::regnamespace
        ) held
        CROSS JOIN LATERAL pg_catalog.aclexplode(held.acl) granted
        WHERE granted.grantee IN ('kuberewind_writer'::regrole, 'kuberewind_auditor'::regrole)
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM kuberewind_writer, kuberewind_auditor', relation);
    END LOOP;
    FOR routine IN
        SELECT DISTINCT p.oid
        FROM pg_catalog.pg_proc p
        CROSS JOIN LATERAL pg_catalog.aclexplode(p.proacl) granted
        WHERE p.pronamespace = 'kuberewind'::regnamespace AND granted.grantee IN ('kuberewind_writer'::regrole, 'kuberewind_auditor'::regrole)
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM kuberewind_writer, kuberewind_auditor', routine);
    END LOOP;
END $$;

-- Only the owner creates objects here. Functions of other owners could run as the user of the record.
DO $$
DECLARE
    other text;
BEGIN
    FOR other IN
        SELECT CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END
        FROM pg_catalog.pg_namespace n
        CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) granted
        WHERE n.nspname = 'kuberewind' AND granted.privilege_type = 'CREATE' AND granted.grantee <> n.nspowner
    LOOP
        EXECUTE format('REVOKE CREATE ON SCHEMA kuberewind FROM %s CASCADE', other);
    END LOOP;
END $$;
REVOKE ALL ON SCHEMA kuberewind FROM kuberewind_writer, kuberewind_auditor;
GRANT USAGE ON SCHEMA kuberewind TO kuberewind_writer, kuberewind_auditor;
GRANT EXECUTE ON FUNCTION kuberewind.schema_version() TO kuberewind_writer, kuberewind_auditor;
GRANT EXECUTE ON FUNCTION kuberewind.ensure_day(date), kuberewind.end_living(integer, integer[], bigint[]) TO kuberewind_writer;

GRANT SELECT ON kuberewind.deltas, kuberewind.changes, kuberewind.objects, kuberewind.gaps, kuberewind.pauses, kuberewind.prunes, kuberewind.server,
    kuberewind.coverage, kuberewind.erasures, kuberewind.clock_steps, kuberewind.recorders
    TO kuberewind_writer, kuberewind_auditor;

-- These functions run with the rights of their caller, and read only the views that are granted here.
GRANT EXECUTE ON FUNCTION
    kuberewind.object_at(text, text, text, text, text, timestamptz), kuberewind.object_at(text, text, text, text, text, text),
    kuberewind.snapshot_at(text, timestamptz, text, text, text), kuberewind.snapshot_at(text, text, text, text, text),
    kuberewind.history(text, text, text, text, text, timestamptz, timestamptz), kuberewind.history(text, text, text, text, text, text, text),
    kuberewind.apply_patch(jsonb, jsonb),
    kuberewind.record_object_at, kuberewind.record_snapshot_at, kuberewind.record_history, kuberewind.record_left_out, kuberewind.record_version,
    kuberewind.record_fold, kuberewind.record_observed_at, kuberewind.record_points, kuberewind.record_points_of, kuberewind.record_seq_at, kuberewind.record_instant,
    kuberewind.record_streams_of, kuberewind.record_cluster, kuberewind.record_tokens
    TO kuberewind_writer, kuberewind_auditor;

-- The views and functions through which programs read the record, under any role.
GRANT SELECT ON
    kuberewind.record_clusters, kuberewind.record_epochs, kuberewind.record_streams, kuberewind.record_lives, kuberewind.record_ends,
    kuberewind.record_living, kuberewind.record_exclusions, kuberewind.record_standbys, kuberewind.record_deltas, kuberewind.record_days, kuberewind.record_gaps,
    kuberewind.record_pauses, kuberewind.record_server, kuberewind.record_checkpoints, kuberewind.record_checkpoint_blocks,
    kuberewind.record_sweeps, kuberewind.record_horizons, kuberewind.record_partitions, kuberewind.record_coverage, kuberewind.record_activity
    TO kuberewind_writer, kuberewind_auditor;

-- The chain of commits: its head, its commits, and the bounds of the dropped commits. "recorder head" and "replay
-- verify --head" read only these.
GRANT SELECT ON kuberewind.record_heads, kuberewind.record_batches, kuberewind.record_prunes TO kuberewind_writer, kuberewind_auditor;

-- I8: on deltas_data and batches, only the right to add rows. Partitions are accessible through their parents only.
GRANT SELECT, INSERT ON
    kuberewind.clusters, kuberewind.heads, kuberewind.epochs, kuberewind.streams, kuberewind.lives, kuberewind.ends, kuberewind.living,
    kuberewind.exclusions, kuberewind.deltas_data, kuberewind.batches, kuberewind.days, kuberewind.gaps_data, kuberewind.pauses_data,
    kuberewind.documents, kuberewind.server_data, kuberewind.sweeps, kuberewind.clock_steps_data
    TO kuberewind_writer;
GRANT UPDATE ON kuberewind.heads, kuberewind.streams, kuberewind.days TO kuberewind_writer;
GRANT UPDATE (name) ON kuberewind.clusters TO kuberewind_writer;
GRANT UPDATE (detail, to_rv, to_at, closed_batch, outcome, appeared, changed, vanished, unchanged) ON kuberewind.gaps_data TO kuberewind_writer;
GRANT DELETE ON kuberewind.living, kuberewind.exclusions TO kuberewind_writer;

-- Only a writer can hold the row of the leader, or lock it: FOR UPDATE and FOR SHARE need the right to UPDATE.
GRANT SELECT, INSERT, UPDATE ON kuberewind.leaders TO kuberewind_writer;
GRANT SELECT, INSERT, UPDATE, DELETE ON kuberewind.standbys TO kuberewind_writer;

-- For functions that verify the chain of batches. Only the owner erases.
GRANT SELECT ON kuberewind.erasures_data, kuberewind.erased_deltas TO kuberewind_writer;

-- Checkpoints are derived, so the role that makes them may drop them.
GRANT SELECT, INSERT, DELETE ON kuberewind.checkpoints, kuberewind.checkpoint_blocks TO kuberewind_writer;

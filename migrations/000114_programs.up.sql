-- Views for programs: checkpoints, and the tables as views.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 114;

-- Checkpoints are derived from the deltas: they may be dropped at any time, and the recorder makes them again. They
-- need no foreign keys: a block without its checkpoint does no harm.
CREATE TABLE kuberewind.checkpoints (
    cluster     integer     NOT NULL,
    checkpoint  bigint      NOT NULL,
    observed_at timestamptz NOT NULL,
    made_at     timestamptz NOT NULL,
    objects     integer     NOT NULL,
    blocks      integer     NOT NULL,
    bytes       bigint      NOT NULL,
    digest      bytea       NOT NULL,
    streams     jsonb       NOT NULL,
    PRIMARY KEY (cluster, checkpoint)
);
COMMENT ON TABLE kuberewind.checkpoints IS 'Compressed copies of all objects that were alive at a seq, from which a rebuild starts. Derived from the deltas: without any, answers are the same, only slower.';
COMMENT ON COLUMN kuberewind.checkpoints.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.checkpoints.checkpoint IS 'The seq: the checkpoint has every delta up to and including it, and none after it.';
COMMENT ON COLUMN kuberewind.checkpoints.observed_at IS 'observed_at of the delta with that seq.';
COMMENT ON COLUMN kuberewind.checkpoints.made_at IS 'When it was written.';
COMMENT ON COLUMN kuberewind.checkpoints.objects IS 'How many objects it holds.';
COMMENT ON COLUMN kuberewind.checkpoints.blocks IS 'How many rows of checkpoint_blocks it has; with fewer it cannot be used.';
COMMENT ON COLUMN kuberewind.checkpoints.bytes IS 'Size of its blocks.';
COMMENT ON COLUMN kuberewind.checkpoints.digest IS 'SHA-256 of the digests of its blocks in order.';
COMMENT ON COLUMN kuberewind.checkpoints.streams IS 'The newest resource version of each stream at that seq, by number of the stream.';

CREATE TABLE kuberewind.checkpoint_blocks (
    cluster    integer NOT NULL,
    checkpoint bigint  NOT NULL,
    block      integer NOT NULL,
    objects    integer NOT NULL,
    digest     bytea   NOT NULL,
    data       bytea   NOT NULL,
    PRIMARY KEY (cluster, checkpoint, block)
);
ALTER TABLE kuberewind.checkpoint_blocks ALTER COLUMN data SET STORAGE EXTERNAL; -- already compressed
COMMENT ON TABLE kuberewind.checkpoint_blocks IS 'The content of checkpoints, some hundred objects a row.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.checkpoint IS 'The checkpoint that it belongs to.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.block IS 'Number of the block within its checkpoint, from 0.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.objects IS 'How many objects it holds.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.digest IS 'SHA-256 of data.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.data IS 'The objects, compressed with zstd.';

-- The tables, for programs that may read only views. Each view is one plain SELECT without conditions. The planner
-- expands it, prunes partitions and uses indexes, as for the table itself.
CREATE VIEW kuberewind.record_clusters AS
SELECT cluster, uid, name, registered_at FROM kuberewind.clusters;
CREATE VIEW kuberewind.record_heads AS
SELECT cluster, epoch, seq, batch, digest, observed_at FROM kuberewind.heads;
CREATE VIEW kuberewind.record_epochs AS
SELECT cluster, epoch, started_at, after_seq, recorder, version, config FROM kuberewind.epochs;
CREATE VIEW kuberewind.record_streams AS
SELECT cluster, stream, api_group, resource, scope, version, kind, namespaced, started_at, state, state_since, detail, filter,
    position, last_rv, last_seq, synced, bookmarks, positioned_at
FROM kuberewind.streams;
CREATE VIEW kuberewind.record_lives AS
SELECT l.cluster, l.object_id, l.stream, l.namespace, l.name, l.uid, e.seq AS deleted_seq, l.owners
FROM kuberewind.lives l
LEFT JOIN kuberewind.ends e ON e.cluster = l.cluster AND e.object_id = l.object_id;
CREATE VIEW kuberewind.record_ends AS
SELECT cluster, object_id, seq FROM kuberewind.ends;
CREATE VIEW kuberewind.record_living AS
SELECT cluster, stream, object_id FROM kuberewind.living;
CREATE VIEW kuberewind.record_exclusions AS
SELECT cluster, stream, uid, namespace, name, excluded_at FROM kuberewind.exclusions;
CREATE VIEW kuberewind.record_standbys AS
SELECT s.cluster_uid, s.recorder, s.seen_at
FROM kuberewind.standbys s
WHERE clock_timestamp() BETWEEN s.seen_at - 2 * s.term AND s.seen_at + 2 * s.term
    AND NOT EXISTS (SELECT FROM kuberewind.leaders l WHERE l.cluster_uid = s.cluster_uid AND l.holder = s.recorder AND l.renewed_at > s.seen_at);
CREATE VIEW kuberewind.record_deltas AS
SELECT cluster, stream, seq, object_id, observed_at, occurred_at, type, source, manager_evidence, rv, version, manager, manager_hint, subresource, digest, patch, object, exact
FROM kuberewind.deltas_data;
CREATE VIEW kuberewind.record_batches AS
SELECT cluster, batch, epoch, first_seq, last_seq, observed_at, committed_at, digest FROM kuberewind.batches;
CREATE VIEW kuberewind.record_days AS
SELECT cluster, day, first_seq, last_seq, first_at, last_at FROM kuberewind.days;
CREATE VIEW kuberewind.record_gaps AS
SELECT cluster, gap, stream, cause, detail, from_rv, from_at, opened_batch, to_rv, to_at, closed_batch, outcome, appeared, changed, vanished, unchanged
FROM kuberewind.gaps_data;
CREATE VIEW kuberewind.record_pauses AS
SELECT cluster, epoch, from_at, to_at, after_seq FROM kuberewind.pauses_data;
CREATE VIEW kuberewind.record_server AS
SELECT v.cluster, v.path, v.observed_at, v.digest, o.content
FROM kuberewind.server_data v
LEFT JOIN kuberewind.documents o ON o.cluster = v.cluster AND o.digest = v.digest;
CREATE VIEW kuberewind.record_checkpoints AS
SELECT cluster, checkpoint, observed_at, made_at, objects, blocks, bytes, digest, streams FROM kuberewind.checkpoints;
CREATE VIEW kuberewind.record_checkpoint_blocks AS
SELECT cluster, checkpoint, block, objects, digest, data FROM kuberewind.checkpoint_blocks;

-- Their columns mean the same as those of the tables.
DO $$
DECLARE
    pair text[];
    col  record;
BEGIN
    FOREACH pair SLICE 1 IN ARRAY ARRAY[
        ['clusters', 'clusters'], ['heads', 'heads'], ['epochs', 'epochs'], ['streams', 'streams'], ['lives', 'lives'], ['ends', 'ends'], ['living', 'living'], ['exclusions', 'exclusions'], ['standbys', 'standbys'],
        ['deltas', 'deltas_data'], ['batches', 'batches'], ['days', 'days'], ['gaps', 'gaps_data'], ['pauses', 'pauses_data'],
        ['server', 'server_data'], ['server', 'documents'], ['checkpoints', 'checkpoints'], ['checkpoint_blocks', 'checkpoint_blocks']]
    LOOP
        EXECUTE format('COMMENT ON VIEW kuberewind.record_%s IS %L', pair[1],
            format('For programs, and not a contract: the table %s as it is.', CASE pair[1] WHEN 'server' THEN 'server_data with its documents' ELSE pair[2] END));
        FOR col IN
            SELECT v.attname, col_description(t.attrelid, t.attnum) AS meaning
            FROM pg_catalog.pg_attribute v
            JOIN pg_catalog.pg_attribute t ON t.attname = v.attname AND t.attnum > 0
            WHERE v.attrelid = format('kuberewind.record_%s', pair[1])::regclass AND t.attrelid = format('kuberewind.%s', pair[2])::regclass AND v.attnum > 0
        LOOP
            EXECUTE format('COMMENT ON COLUMN kuberewind.record_%s.%I IS %L', pair[1], col.attname, col.meaning);
        END LOOP;
    END LOOP;
END $$;
COMMENT ON VIEW kuberewind.record_standbys IS 'For programs, and not a contract: the rows of the table standbys that reported lately and do not lead.';
COMMENT ON VIEW kuberewind.record_lives IS 'For programs, and not a contract: the table lives, with ends.';
COMMENT ON COLUMN kuberewind.record_lives.deleted_seq IS 'seq of the delta that ended it, NULL while it lives.';

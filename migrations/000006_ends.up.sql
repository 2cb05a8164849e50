-- The end of a life is a row of its own, and lives are never updated. An update would write a new version of the row, and, as what lives was found by an index of
-- lives, an entry into each other index of the table: a delta that ended a life cost twice what another did.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 6;

-- Whoever commits begins with the head. What is copied is copied once nobody writes lives or reads them, and not before.
LOCK TABLE kuberewind.heads IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE kuberewind.lives IN ACCESS EXCLUSIVE MODE;

CREATE TABLE kuberewind.ends (
    cluster   integer NOT NULL,
    object_id bigint  NOT NULL,
    seq       bigint  NOT NULL
);
INSERT INTO kuberewind.ends SELECT cluster, object_id, deleted_seq FROM kuberewind.lives WHERE deleted_seq IS NOT NULL ORDER BY cluster, deleted_seq;
ALTER TABLE kuberewind.ends ADD PRIMARY KEY (cluster, object_id);
COMMENT ON TABLE kuberewind.ends IS 'The ends of lives. A life without a row here has not ended.';
COMMENT ON COLUMN kuberewind.ends.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.ends.object_id IS 'Number of the life.';
COMMENT ON COLUMN kuberewind.ends.seq IS 'seq of the delta that ended it.';

-- What a recorder loads when it starts; without it, a start would read every life that ever was. It is written with lives and ends, in one transaction.
CREATE TABLE kuberewind.living (
    cluster   integer NOT NULL,
    stream    integer NOT NULL,
    object_id bigint  NOT NULL
);
INSERT INTO kuberewind.living SELECT cluster, stream, object_id FROM kuberewind.lives WHERE deleted_seq IS NULL ORDER BY cluster, object_id;
ALTER TABLE kuberewind.living ADD PRIMARY KEY (cluster, stream, object_id);
COMMENT ON TABLE kuberewind.living IS 'The lives that have not ended: those without a row in ends.';
COMMENT ON COLUMN kuberewind.living.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.living.stream IS 'The stream that served it, as in lives.';
COMMENT ON COLUMN kuberewind.living.object_id IS 'Number of the life.';

-- Row by row: of a join the planner would have to know how much lives, and of a table in which rows come and go it knows what was there a minute ago.
CREATE FUNCTION kuberewind.end_lives(of_cluster integer, streams integer[], object_ids bigint[], seqs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    INSERT INTO kuberewind.ends (cluster, object_id, seq) SELECT of_cluster, e.object_id, e.seq FROM unnest(object_ids, seqs) AS e (object_id, seq);
    FOR i IN 1 .. cardinality(object_ids) LOOP
        DELETE FROM kuberewind.living l WHERE l.cluster = of_cluster AND l.stream = streams[i] AND l.object_id = object_ids[i];
    END LOOP;
END $$;
COMMENT ON FUNCTION kuberewind.end_lives(integer, integer[], bigint[], bigint[]) IS 'For the recorder: ends lives, each of a stream with its number and the seq of the delta that ends it.';
REVOKE ALL ON FUNCTION kuberewind.end_lives(integer, integer[], bigint[], bigint[]) FROM PUBLIC;

CREATE OR REPLACE VIEW kuberewind.record_lives AS
SELECT l.cluster, l.object_id, l.stream, l.namespace, l.name, l.uid, e.seq AS deleted_seq
FROM kuberewind.lives l
LEFT JOIN kuberewind.ends e ON e.cluster = l.cluster AND e.object_id = l.object_id;
CREATE VIEW kuberewind.record_living AS
SELECT cluster, stream, object_id FROM kuberewind.living;
COMMENT ON VIEW kuberewind.record_lives IS 'For programs, and not a contract: the table lives, with ends.';
COMMENT ON VIEW kuberewind.record_living IS 'For programs, and not a contract: the table living as it is.';
COMMENT ON COLUMN kuberewind.record_living.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.record_living.stream IS 'The stream that served it, as in lives.';
COMMENT ON COLUMN kuberewind.record_living.object_id IS 'Number of the life.';

-- Whoever asks for what lives begins with that, and not with all lives that ever were.
CREATE OR REPLACE VIEW kuberewind.objects AS
SELECT
    c.name AS cluster,
    s.api_group,
    last.version,
    s.resource,
    s.kind,
    l.namespace,
    l.name,
    l.uid,
    first.observed_at AS first_seen,
    last.observed_at AS last_seen,
    CASE first.type WHEN 1 THEN 'Added' WHEN 2 THEN 'Updated' WHEN 3 THEN 'Deleted' WHEN 4 THEN 'Sync' ELSE first.type::text END AS first_type,
    CASE last.type WHEN 1 THEN 'Added' WHEN 2 THEN 'Updated' WHEN 3 THEN 'Deleted' WHEN 4 THEN 'Sync' ELSE last.type::text END AS last_type,
    last.rv AS resource_version,
    alive.object_id IS NULL AS deleted,
    l.object_id,
    last.seq AS last_seq
FROM kuberewind.lives l
JOIN kuberewind.clusters c ON c.cluster = l.cluster
LEFT JOIN kuberewind.living alive ON alive.cluster = l.cluster AND alive.stream = l.stream AND alive.object_id = l.object_id
LEFT JOIN kuberewind.ends e ON e.cluster = l.cluster AND e.object_id = l.object_id
LEFT JOIN kuberewind.streams s ON s.cluster = l.cluster AND s.stream = l.stream
LEFT JOIN LATERAL (
    SELECT max(d.observed_at) AS observed_at, max(d.type) AS type
    FROM (
        SELECT first_at, last_at FROM kuberewind.days
        WHERE cluster = l.cluster AND first_seq <= l.object_id
        ORDER BY first_seq DESC LIMIT 1
    ) born,
    LATERAL (
        SELECT * FROM kuberewind.deltas_data
        WHERE cluster = l.cluster AND seq = l.object_id AND observed_at BETWEEN born.first_at AND born.last_at
        LIMIT 1
    ) d
) first ON true
LEFT JOIN LATERAL (
    SELECT max(n.observed_at) AS observed_at, max(n.type) AS type, max(n.seq) AS seq, max(n.rv) AS rv, max(n.version) AS version
    FROM (
        SELECT d.*
        FROM kuberewind.days y
        CROSS JOIN LATERAL (
            SELECT * FROM kuberewind.deltas_data
            WHERE cluster = l.cluster AND object_id = l.object_id AND observed_at BETWEEN y.first_at AND y.last_at
            ORDER BY seq DESC LIMIT 1
        ) d
        WHERE y.cluster = l.cluster
          AND y.first_seq <= coalesce(e.seq, 9223372036854775807) AND y.last_seq >= coalesce(e.seq, l.object_id)
        ORDER BY y.first_seq DESC LIMIT 1
    ) n
) last ON true;

CREATE OR REPLACE FUNCTION kuberewind.prune_obstacle(of_day date, older_gone boolean) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
DECLARE
    older  date;
    sweep  record;
    broken bigint;
BEGIN
    IF of_day IS NULL OR NOT EXISTS (SELECT FROM kuberewind.record_partitions p WHERE p.day = of_day) THEN
        RETURN 'it has no partition';
    END IF;
    SELECT min(p.day) INTO older FROM kuberewind.record_partitions p WHERE p.day < of_day;
    IF older IS NOT NULL AND NOT older_gone THEN
        RETURN format('%s is older, and goes first', older);
    ELSIF of_day >= (statement_timestamp() AT TIME ZONE 'UTC')::date THEN
        RETURN 'it is not over';
    END IF;
    FOR sweep IN
        SELECT c.name, c.cluster, w.day, w.seq, w.observed_at, greatest(
            (SELECT max(d.seq) FROM kuberewind.deltas_data d WHERE d.cluster = c.cluster AND d.observed_at < (of_day + 1)::timestamptz),
            (SELECT max(p.last_seq) FROM kuberewind.prunes_data p WHERE p.cluster = c.cluster)) AS gone
        FROM kuberewind.clusters c
        JOIN kuberewind.heads h ON h.cluster = c.cluster AND h.batch > 0
        LEFT JOIN LATERAL (
            SELECT x.* FROM kuberewind.sweeps x WHERE x.cluster = c.cluster AND x.day > of_day ORDER BY x.day LIMIT 1
        ) w ON true
        ORDER BY c.name
    LOOP
        -- A cluster whose record began later has nothing to lose, and needs no sweep.
        CONTINUE WHEN sweep.day IS NULL AND sweep.gone IS NULL
            AND NOT EXISTS (SELECT FROM kuberewind.batches b WHERE b.cluster = sweep.cluster AND b.observed_at < (of_day + 1)::timestamptz);
        IF sweep.day IS NULL THEN
            RETURN format('no sweep of the cluster %s is complete after it', sweep.name);
        ELSIF sweep.seq < sweep.gone THEN
            RETURN format('the sweep of %s of the cluster %s says that it was complete with seq %s, and seq %s is of an earlier day', sweep.day, sweep.name, sweep.seq, sweep.gone);
        END IF;
        SELECT count(*) INTO broken
        FROM kuberewind.record_lives l
        WHERE l.cluster = sweep.cluster AND l.object_id <= sweep.seq AND (l.deleted_seq IS NULL OR l.deleted_seq > sweep.seq)
          AND NOT EXISTS (
            SELECT FROM kuberewind.deltas_data d
            WHERE d.cluster = l.cluster AND d.object_id = l.object_id AND d.seq <= sweep.seq AND d.object IS NOT NULL
              AND d.observed_at BETWEEN sweep.day::timestamptz AND sweep.observed_at);
        IF broken > 0 THEN
            RETURN format('%s objects of the cluster %s have no keyframe in the sweep of %s', broken, sweep.name, sweep.day);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION kuberewind.prune_rest(OUT checkpoints bigint, OUT lives bigint, OUT documents bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
BEGIN
    DELETE FROM kuberewind.checkpoint_blocks b USING kuberewind.record_horizons h WHERE b.cluster = h.cluster AND b.checkpoint < h.seq;
    DELETE FROM kuberewind.checkpoints k USING kuberewind.record_horizons h WHERE k.cluster = h.cluster AND k.checkpoint < h.seq;
    GET DIAGNOSTICS checkpoints = ROW_COUNT;
    -- A life that ended before the first delta that is left. Its number is not used again.
    DELETE FROM kuberewind.lives l
    USING (SELECT p.cluster, max(p.last_seq) AS last_seq FROM kuberewind.prunes_data p GROUP BY p.cluster) gone, kuberewind.ends e
    WHERE l.cluster = gone.cluster AND e.cluster = l.cluster AND e.object_id = l.object_id AND e.seq <= gone.last_seq;
    GET DIAGNOSTICS lives = ROW_COUNT;
    DELETE FROM kuberewind.ends e
    USING (SELECT p.cluster, max(p.last_seq) AS last_seq FROM kuberewind.prunes_data p GROUP BY p.cluster) gone
    WHERE e.cluster = gone.cluster AND e.seq <= gone.last_seq;
    LOCK TABLE kuberewind.documents IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM kuberewind.server_data v
    USING kuberewind.record_horizons h
    WHERE v.cluster = h.cluster AND EXISTS (
        SELECT FROM kuberewind.server_data newer
        WHERE newer.cluster = v.cluster AND newer.path = v.path AND newer.observed_at > v.observed_at AND newer.observed_at <= h.observed_at);
    DELETE FROM kuberewind.documents d
    USING kuberewind.record_horizons h
    WHERE d.cluster = h.cluster AND NOT EXISTS (SELECT FROM kuberewind.server_data v WHERE v.cluster = d.cluster AND v.digest = d.digest);
    GET DIAGNOSTICS documents = ROW_COUNT;
END $$;

DROP INDEX kuberewind.lives_alive;
ALTER TABLE kuberewind.lives DROP COLUMN deleted_seq;
ALTER TABLE kuberewind.lives RESET (fillfactor);

-- Retention: a role of its own drops whole days. A sweep makes a day readable without the earlier days.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 118;

CREATE TABLE kuberewind.sweeps (
    cluster     integer     NOT NULL,
    day         date        NOT NULL,
    epoch       bigint      NOT NULL,
    batch       bigint      NOT NULL,
    seq         bigint      NOT NULL,
    observed_at timestamptz NOT NULL,
    objects     bigint      NOT NULL,
    PRIMARY KEY (cluster, day)
);
COMMENT ON TABLE kuberewind.sweeps IS 'Days by which each living object has a row of its own, or was stored again in a Sync keyframe (source resync): from that seq on, no earlier day is needed (I8).';
COMMENT ON COLUMN kuberewind.sweeps.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.sweeps.day IS 'UTC day of observed_at.';
COMMENT ON COLUMN kuberewind.sweeps.epoch IS 'The writer, as in epochs.';
COMMENT ON COLUMN kuberewind.sweeps.batch IS 'The commit with which the sweep was complete.';
COMMENT ON COLUMN kuberewind.sweeps.seq IS 'Last seq of that commit: every object that lived then has a keyframe in the day, at or before it.';
COMMENT ON COLUMN kuberewind.sweeps.observed_at IS 'observed_at of that commit.';
COMMENT ON COLUMN kuberewind.sweeps.objects IS 'How many objects lived then.';

CREATE TABLE kuberewind.prunes_data (
    cluster      integer     NOT NULL,
    day          date        NOT NULL,
    first_seq    bigint,
    last_seq     bigint,
    first_at     timestamptz,
    last_at      timestamptz,
    last_batch   bigint,
    batch_digest bytea,
    bytes        bigint      NOT NULL,
    pruned_at    timestamptz NOT NULL,
    pruned_by    text        NOT NULL,
    reason       text        NOT NULL,
    PRIMARY KEY (cluster, day)
);
COMMENT ON TABLE kuberewind.prunes_data IS 'Days that were dropped: the view prunes shows them with the names of their clusters.';
COMMENT ON COLUMN kuberewind.prunes_data.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.prunes_data.day IS 'UTC day of observed_at.';
COMMENT ON COLUMN kuberewind.prunes_data.first_seq IS 'Lowest seq of the dropped deltas; NULL if the day held commits only.';
COMMENT ON COLUMN kuberewind.prunes_data.last_seq IS 'Highest seq of them.';
COMMENT ON COLUMN kuberewind.prunes_data.first_at IS 'Earliest observed_at of them.';
COMMENT ON COLUMN kuberewind.prunes_data.last_at IS 'Latest observed_at of them.';
COMMENT ON COLUMN kuberewind.prunes_data.last_batch IS 'Last commit that was dropped; NULL if the day held none.';
COMMENT ON COLUMN kuberewind.prunes_data.batch_digest IS 'Its digest, to which the oldest remaining commit is chained.';
COMMENT ON COLUMN kuberewind.prunes_data.bytes IS 'Size of the partitions of that day, of all clusters together.';
COMMENT ON COLUMN kuberewind.prunes_data.pruned_at IS 'When they were dropped, by the database''s clock.';
COMMENT ON COLUMN kuberewind.prunes_data.pruned_by IS 'The login that dropped them.';
COMMENT ON COLUMN kuberewind.prunes_data.reason IS 'The reason given to recorder prune.';

CREATE VIEW kuberewind.prunes AS
SELECT c.name AS cluster, p.day, p.first_seq, p.last_seq, p.first_at, p.last_at, p.bytes, p.pruned_at, p.pruned_by, p.reason
FROM kuberewind.prunes_data p
JOIN kuberewind.clusters c ON c.cluster = p.cluster;
COMMENT ON VIEW kuberewind.prunes IS 'Days of the record that were dropped, by whom and why.';
COMMENT ON COLUMN kuberewind.prunes.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.prunes.day IS 'UTC day of observed_at.';
COMMENT ON COLUMN kuberewind.prunes.first_seq IS 'Lowest seq of the dropped deltas; NULL if the day held none.';
COMMENT ON COLUMN kuberewind.prunes.last_seq IS 'Highest seq of them.';
COMMENT ON COLUMN kuberewind.prunes.first_at IS 'Earliest observed_at of them.';
COMMENT ON COLUMN kuberewind.prunes.last_at IS 'Latest observed_at of them.';
COMMENT ON COLUMN kuberewind.prunes.bytes IS 'Size of the partitions of that day, of all clusters together.';
COMMENT ON COLUMN kuberewind.prunes.pruned_at IS 'When they were dropped.';
COMMENT ON COLUMN kuberewind.prunes.pruned_by IS 'The login that dropped them.';
COMMENT ON COLUMN kuberewind.prunes.reason IS 'The reason given to recorder prune.';

-- Views for programs.
CREATE VIEW kuberewind.record_sweeps AS
SELECT cluster, day, epoch, batch, seq, observed_at, objects FROM kuberewind.sweeps;
CREATE VIEW kuberewind.record_prunes AS
SELECT cluster, day, first_seq, last_seq, first_at, last_at, last_batch, batch_digest, bytes, pruned_at, pruned_by, reason FROM kuberewind.prunes_data;
DO $$
DECLARE
    pair text[];
    col  record;
BEGIN
    FOREACH pair SLICE 1 IN ARRAY ARRAY[['sweeps', 'sweeps'], ['prunes', 'prunes_data']] LOOP
        EXECUTE format('COMMENT ON VIEW kuberewind.record_%s IS %L', pair[1], format('For programs, and not a contract: the table %s as it is.', pair[2]));
        FOR col IN
            SELECT t.attname, col_description(t.attrelid, t.attnum) AS meaning
            FROM pg_catalog.pg_attribute t WHERE t.attrelid = format('kuberewind.%s', pair[2])::regclass AND t.attnum > 0
        LOOP
            EXECUTE format('COMMENT ON COLUMN kuberewind.record_%s.%I IS %L', pair[1], col.attname, col.meaning);
        END LOOP;
    END LOOP;
END $$;

CREATE VIEW kuberewind.record_horizons AS
SELECT p.cluster, p.day, s.seq, s.observed_at
FROM (SELECT cluster, max(day) AS day FROM kuberewind.prunes_data GROUP BY cluster) p
CROSS JOIN LATERAL (
    SELECT w.seq, w.observed_at FROM kuberewind.sweeps w WHERE w.cluster = p.cluster AND w.day > p.day ORDER BY w.day LIMIT 1
) s;
COMMENT ON VIEW kuberewind.record_horizons IS 'For programs, and not a contract: where the record of a cluster is whole again, if days of it were dropped.';
COMMENT ON COLUMN kuberewind.record_horizons.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.record_horizons.day IS 'The newest day that was dropped.';
COMMENT ON COLUMN kuberewind.record_horizons.seq IS 'The seq from which on every object that lived can be read: the seq of the first complete sweep after it.';
COMMENT ON COLUMN kuberewind.record_horizons.observed_at IS 'observed_at of that seq.';

CREATE VIEW kuberewind.record_partitions AS
SELECT p.day, p.bytes, coalesce(d.clusters, 0) AS clusters, d.first_seq, d.last_seq
FROM (
    SELECT to_date(substring(c.relname FROM '_p([0-9]{8})$'), 'YYYYMMDD') AS day, sum(pg_total_relation_size(c.oid))::bigint AS bytes
    FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent IN ('kuberewind.deltas_data'::regclass, 'kuberewind.batches'::regclass) AND c.relkind = 'r' AND c.relname ~ '_p[0-9]{8}$'
    GROUP BY 1
) p
LEFT JOIN (SELECT day, count(*) AS clusters, min(first_seq) AS first_seq, max(last_seq) AS last_seq FROM kuberewind.days GROUP BY day) d ON d.day = p.day;
COMMENT ON VIEW kuberewind.record_partitions IS 'For programs, and not a contract: the days that have partitions, and their size.';
COMMENT ON COLUMN kuberewind.record_partitions.day IS 'UTC day of observed_at.';
COMMENT ON COLUMN kuberewind.record_partitions.bytes IS 'Size of its partitions of deltas_data and batches, with indexes and TOAST.';
COMMENT ON COLUMN kuberewind.record_partitions.clusters IS 'How many clusters have deltas in it.';
COMMENT ON COLUMN kuberewind.record_partitions.first_seq IS 'Lowest seq in it, of any cluster.';
COMMENT ON COLUMN kuberewind.record_partitions.last_seq IS 'Highest seq in it, of any cluster.';

-- I8: why a cluster needs a day, NULL if it does not. Days are dropped from the oldest on. So the record is whole from
-- the first sweep after the day. That is the sweep of the next day, or of a later day if no recorder ran long enough to
-- complete it. The writer writes the sweeps, so this function checks a sweep against the deltas and prunes_data, which
-- the writer cannot change.
--
-- Each query names the cluster, so that a distributed engine can answer it on the node that has the cluster's rows.
CREATE FUNCTION kuberewind.prune_obstacle_of(of_cluster integer, of_day date) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET datestyle = 'ISO, YMD'
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
DECLARE
    day_end timestamptz := (of_day + 1)::timestamptz;
    head    record;
    sweep   record;
    deltas  bigint; -- last seq that this prune removes
    pruned  bigint; -- last seq that earlier prunes removed
    broken  bigint;
BEGIN
    SELECT h.batch, h.observed_at INTO head FROM kuberewind.heads h WHERE h.cluster = of_cluster;
    IF coalesce(head.batch, 0) = 0 THEN
        RETURN NULL; -- it has recorded nothing
    END IF;
    SELECT max(d.seq) INTO deltas FROM kuberewind.deltas_data d WHERE d.cluster = of_cluster AND d.observed_at < day_end;
    SELECT max(p.last_seq) INTO pruned FROM kuberewind.prunes_data p WHERE p.cluster = of_cluster;
    SELECT w.day, w.seq, w.observed_at INTO sweep FROM kuberewind.sweeps w WHERE w.cluster = of_cluster AND w.day > of_day ORDER BY w.day LIMIT 1;
    IF sweep.day IS NULL AND deltas IS NULL AND pruned IS NULL
        AND NOT EXISTS (SELECT FROM kuberewind.batches b WHERE b.cluster = of_cluster AND b.observed_at < day_end) THEN
        RETURN NULL; -- its record began later: it has no data of the day, and needs no sweep
    ELSIF sweep.day IS NULL AND head.observed_at < statement_timestamp() - interval '5 minutes' THEN
        RETURN format('no sweep of it is complete after that day, and its recorder has stopped: it wrote last at %s; start it, and it sweeps', head.observed_at);
    ELSIF sweep.day IS NULL THEN
        RETURN 'no sweep of it is complete after that day';
    ELSIF sweep.seq < greatest(deltas, pruned) THEN
        RETURN format('its sweep of %s says that it was complete with seq %s, and seq %s is of an earlier day', sweep.day, sweep.seq, greatest(deltas, pruned));
    END IF;
    SELECT count(*) INTO broken
    FROM kuberewind.record_lives l
    WHERE l.cluster = of_cluster AND l.object_id <= sweep.seq AND (l.deleted_seq IS NULL OR l.deleted_seq > sweep.seq)
      AND NOT EXISTS (
        SELECT FROM kuberewind.deltas_data d
        WHERE d.cluster = l.cluster AND d.object_id = l.object_id AND d.seq <= sweep.seq AND d.object IS NOT NULL
          AND d.observed_at BETWEEN sweep.day::timestamptz AND sweep.observed_at);
    IF broken > 0 THEN
        RETURN format('%s of its objects have no keyframe in its sweep of %s', broken, sweep.day);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION kuberewind.prune_obstacle_of(integer, date) IS 'For prune_obstacle, and not a contract: why a cluster needs the partitions of a UTC day; NULL if it does not.';
REVOKE ALL ON FUNCTION kuberewind.prune_obstacle_of(integer, date) FROM PUBLIC;

-- A day is dropped for all clusters at once, so one cluster keeps it for all. The result names each such cluster.
CREATE FUNCTION kuberewind.prune_obstacle(of_day date, older_gone boolean) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    older date;
    known record;
    why   text;
    kept  text[] := '{}';
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
    FOR known IN SELECT c.cluster, c.name FROM kuberewind.clusters c ORDER BY c.name LOOP
        why := kuberewind.prune_obstacle_of(known.cluster, of_day);
        IF why IS NOT NULL THEN
            kept := kept || format('the cluster %s keeps it: %s', known.name, why);
        END IF;
    END LOOP;
    RETURN nullif(array_to_string(kept, '. And '), '');
END $$;
COMMENT ON FUNCTION kuberewind.prune_obstacle(date, boolean) IS 'Why the partitions of a UTC day must stay; NULL if they may be dropped without breaking an object that outlives them. Older days are dropped first; older_gone: assume that they were.';
REVOKE ALL ON FUNCTION kuberewind.prune_obstacle(date, boolean) FROM PUBLIC;

-- DETACH ... CONCURRENTLY cannot run in a function, and would need the owner. A DROP waits for every reader of any day,
-- and later sessions, including the recorder, wait behind it. So it waits for a quarter of a second at most, and fails
-- with 55P03. Retry a little later.
CREATE FUNCTION kuberewind.prune_day(of_day date, reason text) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET datestyle = 'ISO, YMD'
SET lock_timeout = '250ms'
AS $$
DECLARE
    obstacle text;
    size     bigint;
BEGIN
    -- Two prunes at the same time would both decide which day goes first. The lock blocks only another prune.
    LOCK TABLE kuberewind.prunes_data IN SHARE ROW EXCLUSIVE MODE;
    obstacle := kuberewind.prune_obstacle(of_day, false);
    IF obstacle IS NOT NULL THEN
        RAISE EXCEPTION 'the day % cannot be dropped: %', coalesce(of_day::text, 'NULL'), obstacle USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF coalesce(reason, '') = '' THEN
        RAISE EXCEPTION 'say why the day % is to be dropped', of_day USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT p.bytes INTO size FROM kuberewind.record_partitions p WHERE p.day = of_day;
    INSERT INTO kuberewind.prunes_data
    SELECT c.cluster, of_day, y.first_seq, y.last_seq, y.first_at, y.last_at, b.batch, b.digest, size, clock_timestamp(), session_user, reason
    FROM kuberewind.clusters c
    LEFT JOIN kuberewind.days y ON y.cluster = c.cluster AND y.day = of_day
    LEFT JOIN LATERAL (
        SELECT x.batch, x.digest FROM kuberewind.batches x
        WHERE x.cluster = c.cluster AND x.observed_at >= of_day::timestamptz AND x.observed_at < (of_day + 1)::timestamptz
        ORDER BY x.batch DESC LIMIT 1
    ) b ON true
    WHERE y.cluster IS NOT NULL OR b.batch IS NOT NULL;
    DELETE FROM kuberewind.days y WHERE y.day = of_day;
    EXECUTE format('DROP TABLE IF EXISTS kuberewind.deltas_p%1$s, kuberewind.batches_p%1$s', to_char(of_day, 'YYYYMMDD'));
    RETURN size;
END $$;
COMMENT ON FUNCTION kuberewind.prune_day(date, text) IS 'Drops the partitions of the oldest UTC day, if no object that outlives it needs them; records this with the reason, and returns their size. Waits a quarter of a second at most for readers (55P03).';
REVOKE ALL ON FUNCTION kuberewind.prune_day(date, text) FROM PUBLIC;

-- This is not part of the drop, because the drop blocks every other session while it runs. A recorder may need a
-- document again while this runs. In that case it inserts the document first, in the same transaction, and waits for
-- the lock.
CREATE FUNCTION kuberewind.prune_rest(OUT checkpoints bigint, OUT lives bigint, OUT documents bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
BEGIN
    DELETE FROM kuberewind.checkpoint_blocks b USING kuberewind.record_horizons h WHERE b.cluster = h.cluster AND b.checkpoint < h.seq;
    DELETE FROM kuberewind.checkpoints k USING kuberewind.record_horizons h WHERE k.cluster = h.cluster AND k.checkpoint < h.seq;
    GET DIAGNOSTICS checkpoints = ROW_COUNT;
    -- A life that ended before the first remaining delta. Its number is not used again. One statement deletes ends and
    -- lives, so that it sees one state of the prunes. If another prune dropped a day between two statements, the ends
    -- of its lives would go and the lives stay.
    WITH over AS (
        DELETE FROM kuberewind.ends e
        USING (SELECT p.cluster, max(p.last_seq) AS last_seq FROM kuberewind.prunes_data p GROUP BY p.cluster) gone
        WHERE e.cluster = gone.cluster AND e.seq <= gone.last_seq
        RETURNING e.cluster, e.object_id)
    DELETE FROM kuberewind.lives l USING over WHERE l.cluster = over.cluster AND l.object_id = over.object_id;
    GET DIAGNOSTICS lives = ROW_COUNT;
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
COMMENT ON FUNCTION kuberewind.prune_rest() IS 'Removes checkpoints, ended lives and server documents that only dropped days used; returns how many of each.';
REVOKE ALL ON FUNCTION kuberewind.prune_rest() FROM PUBLIC;

-- An instant before the horizon has no answer.
CREATE FUNCTION kuberewind.record_points(of_cluster integer, of_streams integer[], by_time timestamptz, by_seq bigint, by_rv text)
RETURNS TABLE (stream integer, seq_max bigint, caught_up bigint, at_time timestamptz, at_rv text, old_seq bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    horizon record;
BEGIN
    SELECT h.* INTO horizon FROM kuberewind.record_horizons h WHERE h.cluster = of_cluster;
    IF by_time < horizon.observed_at OR by_seq < horizon.seq THEN
        RAISE EXCEPTION '% is before what is left of the record: the days up to % were dropped, and it is whole from % with seq % on', coalesce(by_time::text, 'seq ' || by_seq), horizon.day, horizon.observed_at, horizon.seq
            USING ERRCODE = 'invalid_parameter_value', HINT = 'SELECT * FROM kuberewind.prunes says by whom and why.';
    ELSIF by_rv IS NOT NULL AND EXISTS (
        SELECT FROM kuberewind.record_deltas d
        WHERE d.cluster = of_cluster AND d.stream = ANY (of_streams) AND d.seq <= horizon.seq AND d.observed_at <= horizon.observed_at
          AND d.observed_at >= (horizon.day + 1)::timestamp AT TIME ZONE 'UTC'
          AND (length(d.rv), d.rv COLLATE "C") > (length(by_rv), by_rv COLLATE "C")) THEN
        RAISE EXCEPTION 'resource version % is before what is left of the record: the days up to % were dropped, and it is whole from % on', by_rv, horizon.day, horizon.observed_at
            USING ERRCODE = 'invalid_parameter_value', HINT = 'SELECT * FROM kuberewind.prunes says by whom and why.';
    END IF;
    RETURN QUERY SELECT * FROM kuberewind.record_points_of(of_cluster, of_streams, by_time, by_seq, by_rv);
END $$;
COMMENT ON FUNCTION kuberewind.record_points(integer, integer[], timestamptz, bigint, text) IS 'For the functions of this schema, and not a contract: which deltas of each stream belong to an instant, with warnings of gaps, pauses and the ends of the record.';

-- The view coverage is record_coverage, cut at the horizon.
CREATE VIEW kuberewind.coverage AS
SELECT v.cluster, v.api_group, v.resource, v.scope, v.complete,
    CASE WHEN v.from_at < h.observed_at THEN h.observed_at ELSE v.from_at END AS from_at,
    v.to_at,
    CASE WHEN v.from_at < h.observed_at THEN NULL ELSE v.from_rv END AS from_rv,
    v.to_rv, v.live, v.cause, v.detail, v.outcome, v.appeared, v.changed, v.vanished, v.unchanged, v.gap
FROM kuberewind.record_coverage v
LEFT JOIN (kuberewind.record_horizons h JOIN kuberewind.clusters c ON c.cluster = h.cluster) ON c.name = v.cluster
WHERE h.observed_at IS NULL OR v.to_at IS NULL OR v.to_at > h.observed_at
UNION ALL
SELECT c.name, s.api_group, s.resource, s.scope, false, s.started_at, h.observed_at, NULL, NULL, false, 'pruned',
    format('the days up to %s were dropped; see prunes', h.day), NULL, NULL, NULL, NULL, NULL, NULL
FROM kuberewind.record_horizons h
JOIN kuberewind.clusters c ON c.cluster = h.cluster
JOIN kuberewind.streams s ON s.cluster = h.cluster AND s.started_at < h.observed_at;
DO $$
DECLARE
    col record;
BEGIN
    EXECUTE format('COMMENT ON VIEW kuberewind.coverage IS %L',
        'The periods of each resource that the record covers completely, and between them the periods in which versions may have been missed, or were dropped, and why. Pauses are no holes: the next recorder caught up on their changes (see pauses).');
    FOR col IN
        SELECT t.attname, col_description(t.attrelid, t.attnum) AS meaning
        FROM pg_catalog.pg_attribute t WHERE t.attrelid = 'kuberewind.record_coverage'::regclass AND t.attnum > 0
    LOOP
        EXECUTE format('COMMENT ON COLUMN kuberewind.coverage.%I IS %L', col.attname,
            replace(col.meaning, 'or stopped (no recorder runs)', 'stopped (no recorder runs), or pruned (it was dropped, see prunes)'));
    END LOOP;
END $$;

-- Lives that are over and their ends go by one statement, which sees one state of what was dropped. Two statements saw one each:
-- a day that another prune dropped between them lost the ends of its lives and not the lives, which from then on seemed to live,
-- and were in the way of every later prune.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 10;

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

-- Those to which that happened. A commit that begins a life writes it into living, or into ends.
DELETE FROM kuberewind.lives l
USING (SELECT p.cluster, max(p.last_seq) AS last_seq FROM kuberewind.prunes_data p GROUP BY p.cluster) gone
WHERE l.cluster = gone.cluster AND l.object_id <= gone.last_seq
    AND NOT EXISTS (SELECT FROM kuberewind.living a WHERE a.cluster = l.cluster AND a.stream = l.stream AND a.object_id = l.object_id)
    AND NOT EXISTS (SELECT FROM kuberewind.ends e WHERE e.cluster = l.cluster AND e.object_id = l.object_id);

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

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 9;

DROP INDEX kuberewind.lives_by_uid_hash;

DROP FUNCTION kuberewind.end_living(integer, integer[], bigint[]);
CREATE FUNCTION kuberewind.end_lives(of_cluster integer, streams integer[], object_ids bigint[], seqs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    INSERT INTO kuberewind.ends (cluster, object_id, seq) SELECT of_cluster, e.object_id, e.seq FROM unnest(object_ids, seqs) AS e (object_id, seq);
    -- By ctid, and never a row of another cluster; + 0 keeps the planner from looking the cluster up.
    DELETE FROM kuberewind.living d WHERE d.cluster + 0 = of_cluster AND d.ctid = ANY (ARRAY(
        SELECT (SELECT l.ctid FROM kuberewind.living l WHERE l.cluster = of_cluster AND l.stream = e.stream AND l.object_id = e.object_id)
        FROM unnest(streams, object_ids) AS e (stream, object_id)));
END $$;
COMMENT ON FUNCTION kuberewind.end_lives(integer, integer[], bigint[], bigint[]) IS 'For the recorder: ends lives, each of a stream with its number and the seq of the delta that ends it.';
REVOKE ALL ON FUNCTION kuberewind.end_lives(integer, integer[], bigint[], bigint[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 7;

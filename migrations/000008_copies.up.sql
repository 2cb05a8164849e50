-- A life costs less of the log: what lives and what ends is copied like the deltas, and a UID will be found by its hash (000009).

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 8;

-- Whoever commits begins with the head, and waits here for as long as the index is built, as a prune does that takes lives away; whoever reads does not.
LOCK TABLE kuberewind.heads IN SHARE ROW EXCLUSIVE MODE;
-- UIDs are equal or not, and nobody asks for their order. An entry holds four bytes of hash, where that of a B-tree holds the text.
-- Lives of objects without a UID, which only an aggregated API may serve, are all in one bucket: a new one looks for room in its pages, of some 400 entries each.
CREATE INDEX lives_by_uid_hash ON kuberewind.lives USING hash (uid);

-- Each life is looked up by the whole key, which a join would not be sure to do: for that the planner would have to know how much lives, and of a table in which rows come
-- and go it knows what was there a minute ago. One statement for each life takes nearly three times as long.
DROP FUNCTION kuberewind.end_lives(integer, integer[], bigint[], bigint[]);
CREATE FUNCTION kuberewind.end_living(of_cluster integer, streams integer[], object_ids bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    -- By ctid, and never a row of another cluster; + 0 keeps the planner from looking the cluster up.
    DELETE FROM kuberewind.living d WHERE d.cluster + 0 = of_cluster AND d.ctid = ANY (ARRAY(
        SELECT (SELECT l.ctid FROM kuberewind.living l WHERE l.cluster = of_cluster AND l.stream = e.stream AND l.object_id = e.object_id)
        FROM unnest(streams, object_ids) AS e (stream, object_id)));
END $$;
COMMENT ON FUNCTION kuberewind.end_living(integer, integer[], bigint[]) IS 'For the recorder: takes lives that have ended, each of a stream with its number, out of living.';
REVOKE ALL ON FUNCTION kuberewind.end_living(integer, integer[], bigint[]) FROM PUBLIC;

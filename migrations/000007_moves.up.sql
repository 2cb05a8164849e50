-- Patches move elements of arrays that stand elsewhere now, and say from where. Lives are ended by one statement.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 7;

CREATE OR REPLACE VIEW kuberewind.changes AS
SELECT
    d.cluster, d.seq, d.observed_at, d.occurred_at, d.type, d.source, d.api_group, d.version, d.resource, d.kind,
    d.namespace, d.name, d.uid, d.resource_version, d.manager, d.patch, d.object,
    change.step ->> 'op' AS op,
    change.step ->> 'path' AS path,
    change.step -> 'old' AS old,
    change.step -> 'value' AS new,
    change.n AS step,
    d.subresource,
    d.object_id,
    change.step ->> 'from' AS moved_from
FROM kuberewind.deltas d
CROSS JOIN LATERAL jsonb_array_elements(
    CASE WHEN d.type <> 'Deleted' AND d.patch IS NOT NULL THEN d.patch
    ELSE
        CASE
            WHEN d.patch IS NOT NULL THEN d.patch
            WHEN d.object IS NULL THEN '[]'
            ELSE jsonb_build_array(jsonb_build_object(
                'op', CASE WHEN d.seq = d.object_id THEN 'add' ELSE 'replace' END, 'path', '', 'value', d.object))
        END
        || CASE WHEN d.type = 'Deleted' THEN '[{"op": "remove", "path": ""}]'::jsonb ELSE '[]' END
    END
) WITH ORDINALITY AS change (step, n);
COMMENT ON COLUMN kuberewind.changes.op IS 'add, replace, remove or move, as in RFC 6902. What is moved is an element of an array that stands elsewhere now; what has changed in it is a row of its own.';
COMMENT ON COLUMN kuberewind.changes.path IS 'JSON pointer (RFC 6901) of what changed, '''' for the whole object; of what was moved, where this step puts it.';
COMMENT ON COLUMN kuberewind.changes.old IS 'The value before; NULL for add and move, and for the whole object.';
COMMENT ON COLUMN kuberewind.changes.new IS 'The value after; NULL for remove and move. JSON''s own null is ''null''.';
COMMENT ON COLUMN kuberewind.changes.moved_from IS 'JSON pointer of where it stood before this step, for move; NULL else.';

-- What these columns hold is what they always held.
COMMENT ON COLUMN kuberewind.streams.last_rv IS 'Newest resource version that it was served, by a delta or by a bookmark.';
COMMENT ON COLUMN kuberewind.deltas_data.manager IS 'Field manager whose entry in managedFields is newest or, where times do not tell, which the version has changed; NULL if there is none, and for what nobody wrote (resync, schema, inferred). A watch does not carry the user.';
COMMENT ON COLUMN kuberewind.deltas.manager IS 'Field manager whose entry in managedFields is newest or, where times do not tell, which the version has changed; NULL if there is none, and for what nobody wrote (resync, schema, inferred). A watch does not carry the user.';
COMMENT ON COLUMN kuberewind.changes.manager IS 'Field manager who made the version, as in deltas.';
COMMENT ON COLUMN kuberewind.deltas.source IS 'How it was learnt: watch, list (the first), relist, resync, schema (other content at the same resource version), inferred (a list no longer held the object).';
COMMENT ON COLUMN kuberewind.changes.source IS 'How it was learnt, as in deltas. Only of the source watch is op what happened at occurred_at.';
COMMENT ON COLUMN kuberewind.objects.first_type IS 'Added if its creation was seen, Sync if a list found it: it was there before recording began, or began in a gap.';
COMMENT ON COLUMN kuberewind.pauses_data.from_at IS 'The last that was recorded or spooled before it.';
COMMENT ON COLUMN kuberewind.pauses.from_at IS 'The last that was recorded or spooled before it.';

-- Each life is looked up by the whole key, which a join would not be sure to do: for that the planner would have to know how much lives, and of a table in which rows come
-- and go it knows what was there a minute ago. One statement for each life takes nearly three times as long.
CREATE OR REPLACE FUNCTION kuberewind.end_lives(of_cluster integer, streams integer[], object_ids bigint[], seqs bigint[]) RETURNS void
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

DROP VIEW kuberewind.changes;
CREATE VIEW kuberewind.changes AS
SELECT
    d.cluster, d.seq, d.observed_at, d.occurred_at, d.type, d.source, d.api_group, d.version, d.resource, d.kind,
    d.namespace, d.name, d.uid, d.resource_version, d.manager, d.patch, d.object,
    change.step ->> 'op' AS op,
    change.step ->> 'path' AS path,
    change.step -> 'old' AS old,
    change.step -> 'value' AS new,
    change.n AS step,
    d.subresource,
    d.object_id
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
COMMENT ON VIEW kuberewind.changes IS 'One row for each path that a delta changed. The first version of an object is one row: add, path '''', the object in new. A delete ends with one: remove, path ''''. A version stored without a patch is replace, path ''''. A delta that changed nothing but the resource version has no row.';
COMMENT ON COLUMN kuberewind.changes.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.changes.seq IS 'Number of the delta within its cluster.';
COMMENT ON COLUMN kuberewind.changes.observed_at IS 'When the recorder saw it; bound it wherever you can.';
COMMENT ON COLUMN kuberewind.changes.occurred_at IS 'Best evidence of when it happened, as in deltas.';
COMMENT ON COLUMN kuberewind.changes.type IS 'Added, Updated, Deleted or Sync, as in deltas.';
COMMENT ON COLUMN kuberewind.changes.source IS 'How it was learnt, as in deltas: only the source watch says that op happened just then.';
COMMENT ON COLUMN kuberewind.changes.api_group IS 'API group, '''' for the core group.';
COMMENT ON COLUMN kuberewind.changes.version IS 'API version in which the object was served.';
COMMENT ON COLUMN kuberewind.changes.resource IS 'Resource: the plural name, as in URLs.';
COMMENT ON COLUMN kuberewind.changes.kind IS 'Kind.';
COMMENT ON COLUMN kuberewind.changes.namespace IS 'Namespace, '''' for cluster-scoped objects.';
COMMENT ON COLUMN kuberewind.changes.name IS 'Name, cut with a digest at its end if it has more than 1,024 bytes.';
COMMENT ON COLUMN kuberewind.changes.uid IS 'UID: identifies one life of the object.';
COMMENT ON COLUMN kuberewind.changes.resource_version IS 'Resource version, as in deltas.';
COMMENT ON COLUMN kuberewind.changes.manager IS 'Field manager whose entry in managedFields is newest, NULL if there is none.';
COMMENT ON COLUMN kuberewind.changes.patch IS 'The whole patch of the delta.';
COMMENT ON COLUMN kuberewind.changes.object IS 'The whole object, if the delta is a keyframe.';
COMMENT ON COLUMN kuberewind.changes.op IS 'add, replace or remove, as in RFC 6902.';
COMMENT ON COLUMN kuberewind.changes.path IS 'JSON pointer (RFC 6901) of what changed, '''' for the whole object.';
COMMENT ON COLUMN kuberewind.changes.old IS 'The value before; NULL for add, and for the whole object.';
COMMENT ON COLUMN kuberewind.changes.new IS 'The value after; NULL for remove. JSON''s own null is ''null''.';
COMMENT ON COLUMN kuberewind.changes.step IS 'Place of the change in its patch, from 1. Positions in arrays are as they stand after the steps before.';
COMMENT ON COLUMN kuberewind.changes.subresource IS 'Subresource of the manager''s entry, such as status; NULL for none.';
COMMENT ON COLUMN kuberewind.changes.object_id IS 'Number of the life within its cluster.';

COMMENT ON COLUMN kuberewind.streams.last_rv IS 'Resource version of its last recorded delta.';
COMMENT ON COLUMN kuberewind.deltas_data.manager IS 'Field manager whose entry in managedFields is newest, NULL if there is none. A watch does not carry the user.';
COMMENT ON COLUMN kuberewind.deltas.manager IS 'Field manager whose entry in managedFields is newest, NULL if there is none. A watch does not carry the user.';
COMMENT ON COLUMN kuberewind.deltas.source IS 'How it was learnt: watch, list (the first), relist, resync, schema (the served version changed), inferred (a list no longer held the object).';
COMMENT ON COLUMN kuberewind.objects.first_type IS 'Added if its creation was seen, Sync if it was there when recording began.';
COMMENT ON COLUMN kuberewind.pauses_data.from_at IS 'The last commit before it.';
COMMENT ON COLUMN kuberewind.pauses.from_at IS 'The last commit before it.';
CREATE OR REPLACE FUNCTION kuberewind.end_lives(of_cluster integer, streams integer[], object_ids bigint[], seqs bigint[]) RETURNS void
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
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 6;

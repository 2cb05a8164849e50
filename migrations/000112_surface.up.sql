-- The public surface: views. They run as their owner, so that an auditor needs no right on the tables under them. Lives
-- and streams are joined from the left. A query that uses none of their columns does not read them. A query by name
-- still starts from the index on names.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 112;

CREATE VIEW kuberewind.deltas AS
SELECT
    c.name AS cluster,
    d.seq,
    d.observed_at,
    d.occurred_at,
    CASE d.type WHEN 1 THEN 'Added' WHEN 2 THEN 'Updated' WHEN 3 THEN 'Deleted' WHEN 4 THEN 'Sync' ELSE d.type::text END AS type,
    CASE d.source
        WHEN 1 THEN 'watch' WHEN 2 THEN 'list' WHEN 3 THEN 'relist'
        WHEN 4 THEN 'resync' WHEN 5 THEN 'schema' WHEN 6 THEN 'inferred' ELSE d.source::text
    END AS source,
    s.api_group,
    d.version,
    s.resource,
    s.kind,
    l.namespace,
    l.name,
    l.uid,
    d.rv AS resource_version,
    d.manager,
    CASE d.manager_evidence WHEN 1 THEN 'entry' WHEN 2 THEN 'owner' WHEN 3 THEN 'none' ELSE d.manager_evidence::text END AS manager_evidence,
    d.manager_hint,
    d.patch,
    d.object::jsonb AS object,
    d.subresource,
    d.object_id,
    d.digest,
    d.exact
FROM kuberewind.deltas_data d
JOIN kuberewind.clusters c ON c.cluster = d.cluster
LEFT JOIN kuberewind.streams s ON s.cluster = d.cluster AND s.stream = d.stream
LEFT JOIN kuberewind.lives l ON l.cluster = d.cluster AND l.object_id = d.object_id;
COMMENT ON VIEW kuberewind.deltas IS 'Every delta: one change of one object, as the API server served it. Bound observed_at if you can: each UTC day is a partition.';
COMMENT ON COLUMN kuberewind.deltas.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.deltas.seq IS 'Number of the delta within its cluster: from 1, without holes, in the order recorded.';
COMMENT ON COLUMN kuberewind.deltas.observed_at IS 'When the recorder saw it. Does not decrease with seq.';
COMMENT ON COLUMN kuberewind.deltas.occurred_at IS 'Best evidence of when it happened: observed_at, but an estimate for changes that were caught up after a pause (see pauses).';
COMMENT ON COLUMN kuberewind.deltas.type IS 'Added, Updated, Deleted, or Sync: the state of an object found by listing, or stored again.';
COMMENT ON COLUMN kuberewind.deltas.source IS 'Source: watch, list (the first), relist, resync, schema (other content at the same resource version), inferred (a list no longer had the object).';
COMMENT ON COLUMN kuberewind.deltas.api_group IS 'API group, '''' for the core group.';
COMMENT ON COLUMN kuberewind.deltas.version IS 'API version in which the object was served.';
COMMENT ON COLUMN kuberewind.deltas.resource IS 'Resource: the plural name, as in URLs.';
COMMENT ON COLUMN kuberewind.deltas.kind IS 'Kind.';
COMMENT ON COLUMN kuberewind.deltas.namespace IS 'Namespace, '''' for cluster-scoped objects.';
COMMENT ON COLUMN kuberewind.deltas.name IS 'Name, cut with a digest at its end if it has more than 1,024 bytes.';
COMMENT ON COLUMN kuberewind.deltas.uid IS 'UID: identifies one life of the object.';
COMMENT ON COLUMN kuberewind.deltas.resource_version IS 'Resource version; for an inferred delete, the resource version of the list that no longer had the object.';
COMMENT ON COLUMN kuberewind.deltas.manager IS 'Field manager that wrote the version, if its managedFields prove it; else NULL, as on every Deleted and Sync. A watch does not carry the user.';
COMMENT ON COLUMN kuberewind.deltas.manager_evidence IS 'Proof of the manager: entry (only its entry in managedFields is new, later, or took a path), owner (only it owns every path that was written), none (there is no proof, and manager is NULL).';
COMMENT ON COLUMN kuberewind.deltas.manager_hint IS 'Field manager that owned the removed fields; it need not have removed them. NULL if there is none.';
COMMENT ON COLUMN kuberewind.deltas.patch IS 'RFC 6902 patch against the previous version, with the member "old" on replace and remove. It does not contain metadata.resourceVersion. NULL on first versions and inferred deletes.';
COMMENT ON COLUMN kuberewind.deltas.object IS 'The whole object, on keyframes: first versions, Sync, and some others. If exact is not NULL, it was changed for jsonb.';
COMMENT ON COLUMN kuberewind.deltas.subresource IS 'Subresource of the manager''s entry, such as status; NULL for none.';
COMMENT ON COLUMN kuberewind.deltas.object_id IS 'Number of the life within its cluster: the seq of its first delta.';
COMMENT ON COLUMN kuberewind.deltas.digest IS 'First 16 bytes of SHA-256 of the canonical JSON text of this version; for an inferred delete, of the last known version.';
COMMENT ON COLUMN kuberewind.deltas.exact IS 'The exact canonical text in UTF-8, if object had to be changed for jsonb.';

-- A patch has one row for each of its steps. A delta without a patch is one step on the whole document, whose path is
-- '' in RFC 6902.
CREATE VIEW kuberewind.changes AS
SELECT
    d.cluster, d.seq, d.observed_at, d.occurred_at, d.type, d.source, d.api_group, d.version, d.resource, d.kind,
    d.namespace, d.name, d.uid, d.resource_version, d.manager, d.manager_evidence, d.manager_hint, d.patch, d.object,
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
COMMENT ON VIEW kuberewind.changes IS 'One row for each path that a delta changed. The first version of an object is one row: add, path '''', the object in new. A delete ends with one: remove, path ''''. A version stored without a patch is replace, path ''''. A delta that changed nothing but the resource version has no row.';
COMMENT ON COLUMN kuberewind.changes.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.changes.seq IS 'Number of the delta within its cluster.';
COMMENT ON COLUMN kuberewind.changes.observed_at IS 'When the recorder saw it; bound it if you can.';
COMMENT ON COLUMN kuberewind.changes.occurred_at IS 'Best evidence of when it happened, as in deltas.';
COMMENT ON COLUMN kuberewind.changes.type IS 'Added, Updated, Deleted or Sync, as in deltas.';
COMMENT ON COLUMN kuberewind.changes.source IS 'Source, as in deltas. Only for the source watch did op happen at occurred_at.';
COMMENT ON COLUMN kuberewind.changes.api_group IS 'API group, '''' for the core group.';
COMMENT ON COLUMN kuberewind.changes.version IS 'API version in which the object was served.';
COMMENT ON COLUMN kuberewind.changes.resource IS 'Resource: the plural name, as in URLs.';
COMMENT ON COLUMN kuberewind.changes.kind IS 'Kind.';
COMMENT ON COLUMN kuberewind.changes.namespace IS 'Namespace, '''' for cluster-scoped objects.';
COMMENT ON COLUMN kuberewind.changes.name IS 'Name, cut with a digest at its end if it has more than 1,024 bytes.';
COMMENT ON COLUMN kuberewind.changes.uid IS 'UID: identifies one life of the object.';
COMMENT ON COLUMN kuberewind.changes.resource_version IS 'Resource version, as in deltas.';
COMMENT ON COLUMN kuberewind.changes.manager IS 'Field manager that wrote the version, as in deltas.';
COMMENT ON COLUMN kuberewind.changes.manager_evidence IS 'Proof of the manager, as in deltas; NULL: unproved.';
COMMENT ON COLUMN kuberewind.changes.manager_hint IS 'Field manager that owned the removed fields, as in deltas.';
COMMENT ON COLUMN kuberewind.changes.patch IS 'The whole patch of the delta.';
COMMENT ON COLUMN kuberewind.changes.object IS 'The whole object, if the delta is a keyframe.';
COMMENT ON COLUMN kuberewind.changes.op IS 'add, replace, remove or move, as in RFC 6902. move: an element of an array has another place now; a change in the element is a row of its own.';
COMMENT ON COLUMN kuberewind.changes.path IS 'JSON pointer (RFC 6901) of the changed value, '''' for the whole object; for move, the new place.';
COMMENT ON COLUMN kuberewind.changes.old IS 'The value before; NULL for add and move, and for the whole object.';
COMMENT ON COLUMN kuberewind.changes.new IS 'The value after; NULL for remove and move. JSON''s own null is ''null''.';
COMMENT ON COLUMN kuberewind.changes.step IS 'Place of the change in its patch, from 1. Positions in arrays are those after the earlier steps.';
COMMENT ON COLUMN kuberewind.changes.subresource IS 'Subresource of the manager''s entry, such as status; NULL for none.';
COMMENT ON COLUMN kuberewind.changes.object_id IS 'Number of the life within its cluster.';
COMMENT ON COLUMN kuberewind.changes.moved_from IS 'For move, the JSON pointer of the place before this step; otherwise NULL.';

-- The key finds the first delta of a life, in the one partition that days names. The last delta is searched from the
-- newest day backwards, or from the day of the delete, until a day has a row of the life. The LIMITs make days come
-- first, so that each probe opens one partition. Both are aggregates of at most one row. So the planner skips them if a
-- query does not use their columns.
CREATE VIEW kuberewind.objects AS
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
COMMENT ON VIEW kuberewind.objects IS 'One row for each life of an object: an object that was deleted and made again under its name has two, with different UIDs.';
COMMENT ON COLUMN kuberewind.objects.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.objects.api_group IS 'API group, '''' for the core group.';
COMMENT ON COLUMN kuberewind.objects.version IS 'API version in which it was last served.';
COMMENT ON COLUMN kuberewind.objects.resource IS 'Resource: the plural name, as in URLs.';
COMMENT ON COLUMN kuberewind.objects.kind IS 'Kind.';
COMMENT ON COLUMN kuberewind.objects.namespace IS 'Namespace, '''' for cluster-scoped objects.';
COMMENT ON COLUMN kuberewind.objects.name IS 'Name, cut with a digest at its end if it has more than 1,024 bytes.';
COMMENT ON COLUMN kuberewind.objects.uid IS 'UID: identifies this life.';
COMMENT ON COLUMN kuberewind.objects.first_seen IS 'observed_at of its first delta; NULL if that is no longer on record.';
COMMENT ON COLUMN kuberewind.objects.last_seen IS 'observed_at of its last delta; NULL if that is no longer on record.';
COMMENT ON COLUMN kuberewind.objects.first_type IS 'Added if the recorder saw its creation, Sync if a list found it: it existed before recording began, or began in a gap.';
COMMENT ON COLUMN kuberewind.objects.last_type IS 'Type of its last delta; Deleted if it is gone.';
COMMENT ON COLUMN kuberewind.objects.resource_version IS 'Resource version of its last delta.';
COMMENT ON COLUMN kuberewind.objects.deleted IS 'Whether it is gone.';
COMMENT ON COLUMN kuberewind.objects.object_id IS 'Number of the life within its cluster: the seq of its first delta.';
COMMENT ON COLUMN kuberewind.objects.last_seq IS 'seq of its last delta.';

CREATE VIEW kuberewind.gaps AS
SELECT
    c.name AS cluster, g.gap, s.api_group, s.resource, s.scope, g.cause, g.detail,
    g.from_at, g.to_at, g.from_rv, g.to_rv,
    g.closed_batch IS NULL AS open,
    g.outcome, g.appeared, g.changed, g.vanished, g.unchanged, g.opened_batch, g.closed_batch
FROM kuberewind.gaps_data g
JOIN kuberewind.clusters c ON c.cluster = g.cluster
LEFT JOIN kuberewind.streams s ON s.cluster = g.cluster AND s.stream = g.stream;
COMMENT ON VIEW kuberewind.gaps IS 'Periods of a resource in which versions may have been missed, and why.';
COMMENT ON COLUMN kuberewind.gaps.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.gaps.gap IS 'Number of the gap within its cluster.';
COMMENT ON COLUMN kuberewind.gaps.api_group IS 'API group of the resource, '''' for the core group.';
COMMENT ON COLUMN kuberewind.gaps.resource IS 'Resource: the plural name, as in URLs.';
COMMENT ON COLUMN kuberewind.gaps.scope IS 'Namespace to which the recording of the resource is confined, '''' for all.';
COMMENT ON COLUMN kuberewind.gaps.cause IS 'Why: first_list, expired, overflow, spool_corrupt, configuration, forbidden, unauthorized, not_found, unreachable, undecodable, history_reversed.';
COMMENT ON COLUMN kuberewind.gaps.detail IS 'What the server or the recorder says about it.';
COMMENT ON COLUMN kuberewind.gaps.from_at IS 'When the resource was last known to be complete; NULL if it never was.';
COMMENT ON COLUMN kuberewind.gaps.to_at IS 'When it was complete again; NULL while open.';
COMMENT ON COLUMN kuberewind.gaps.from_rv IS 'Resource version up to which it was complete; NULL if it never was.';
COMMENT ON COLUMN kuberewind.gaps.to_rv IS 'Resource version from which it is complete again; NULL while open.';
COMMENT ON COLUMN kuberewind.gaps.open IS 'Whether the gap is still open.';
COMMENT ON COLUMN kuberewind.gaps.outcome IS 'How it ended: resumed if nothing was missed, relisted if a list replaced the missed versions, equal if that list had no changes; NULL while open.';
COMMENT ON COLUMN kuberewind.gaps.appeared IS 'Objects that the list had and the record did not.';
COMMENT ON COLUMN kuberewind.gaps.changed IS 'Objects that the list had in another version.';
COMMENT ON COLUMN kuberewind.gaps.vanished IS 'Objects that the list no longer had: their deletes are inferred.';
COMMENT ON COLUMN kuberewind.gaps.unchanged IS 'Objects that the list had in the recorded version.';
COMMENT ON COLUMN kuberewind.gaps.opened_batch IS 'The commit that opened it.';
COMMENT ON COLUMN kuberewind.gaps.closed_batch IS 'The commit that closed it; NULL while open.';

CREATE VIEW kuberewind.pauses AS
SELECT c.name AS cluster, p.from_at, p.to_at, p.after_seq, p.epoch, e.recorder, e.version
FROM kuberewind.pauses_data p
JOIN kuberewind.clusters c ON c.cluster = p.cluster
LEFT JOIN kuberewind.epochs e ON e.cluster = p.cluster AND e.epoch = p.epoch;
COMMENT ON VIEW kuberewind.pauses IS 'When no recorder ran. The next recorder caught up on the changes, unless a gap says otherwise; their times in occurred_at are estimates.';
COMMENT ON COLUMN kuberewind.pauses.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.pauses.from_at IS 'The last observation before it, recorded or spooled.';
COMMENT ON COLUMN kuberewind.pauses.to_at IS 'When a recorder took over again.';
COMMENT ON COLUMN kuberewind.pauses.after_seq IS 'Last seq before it.';
COMMENT ON COLUMN kuberewind.pauses.epoch IS 'Number of the writer that took over.';
COMMENT ON COLUMN kuberewind.pauses.recorder IS 'Its name (host and process).';
COMMENT ON COLUMN kuberewind.pauses.version IS 'Its version.';

CREATE VIEW kuberewind.recorders AS
SELECT c.name AS cluster, l.holder AS recorder, CASE WHEN isfinite(l.renewed_at) THEN l.renewed_at END AS renewed_at, l.term,
    clock_timestamp() BETWEEN l.renewed_at - l.term AND l.renewed_at + l.term AS recording
FROM kuberewind.leaders l
JOIN kuberewind.clusters c ON c.uid = l.cluster_uid
WHERE l.holder <> '';
COMMENT ON VIEW kuberewind.recorders IS 'The recorder that was last chosen to record each cluster, and whether it still records. A recorder renews its row each second, even if nothing happens in the cluster.';
COMMENT ON COLUMN kuberewind.recorders.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.recorders.recorder IS 'Name of the recorder (host and process).';
COMMENT ON COLUMN kuberewind.recorders.renewed_at IS 'When it last renewed its row, by the clock of the database; NULL if it has ended by itself.';
COMMENT ON COLUMN kuberewind.recorders.term IS 'How long after renewed_at another recorder may take its place.';
COMMENT ON COLUMN kuberewind.recorders.recording IS 'Whether it records now: renewed_at is no longer ago than term. A recorder that was killed counts until then.';

CREATE VIEW kuberewind.clock_steps AS
SELECT c.name AS cluster, t.epoch, e.recorder, t.step, t.after_seq, t.record_at, t.recorder_at, t.database_at, t.adopted
FROM kuberewind.clock_steps_data t
JOIN kuberewind.clusters c ON c.cluster = t.cluster
LEFT JOIN kuberewind.epochs e ON e.cluster = t.cluster AND e.epoch = t.epoch;
COMMENT ON VIEW kuberewind.clock_steps IS 'When a recorder''s clock stepped by more than a minute, or differed from the database''s: observed_at is less exact there.';
COMMENT ON COLUMN kuberewind.clock_steps.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.clock_steps.epoch IS 'The writer, as in pauses.';
COMMENT ON COLUMN kuberewind.clock_steps.recorder IS 'Name of the process that wrote (host and process).';
COMMENT ON COLUMN kuberewind.clock_steps.step IS 'Number of the step within its epoch.';
COMMENT ON COLUMN kuberewind.clock_steps.after_seq IS 'Last seq that was committed then.';
COMMENT ON COLUMN kuberewind.clock_steps.record_at IS 'The record''s time before it. observed_at does not go below it.';
COMMENT ON COLUMN kuberewind.clock_steps.recorder_at IS 'Time of the recorder''s host.';
COMMENT ON COLUMN kuberewind.clock_steps.database_at IS 'Time of the database.';
COMMENT ON COLUMN kuberewind.clock_steps.adopted IS 'Whether the record continues with the time of the recorder''s host, because the database''s agreed. Otherwise it continues from record_at, with the time that passes.';

CREATE VIEW kuberewind.server AS
SELECT c.name AS cluster, v.path, v.observed_at, o.content::jsonb AS content, v.digest
FROM kuberewind.server_data v
JOIN kuberewind.clusters c ON c.cluster = v.cluster
LEFT JOIN kuberewind.documents o ON o.cluster = v.cluster AND o.digest = v.digest;
COMMENT ON VIEW kuberewind.server IS 'The API server''s documents about itself: version, discovery, OpenAPI. One row for each change, valid until the next row of its path.';
COMMENT ON COLUMN kuberewind.server.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.server.path IS 'Path of the document on the API server, such as /version.';
COMMENT ON COLUMN kuberewind.server.observed_at IS 'When this content was first seen.';
COMMENT ON COLUMN kuberewind.server.content IS 'The document; NULL when the server stopped serving it.';
COMMENT ON COLUMN kuberewind.server.digest IS 'Digest of the document.';

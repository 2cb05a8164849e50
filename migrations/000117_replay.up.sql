-- Replay: objects, snapshots and histories, folded from the deltas.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 117;

-- The function goes back from the newest day, and reads one partition of each day. The first row of a life in a day is
-- a keyframe (I8), so that day holds all rows that the last version of the day needs. The function does not search
-- again for an object that it found.
CREATE FUNCTION kuberewind.record_fold(of_cluster integer, objects bigint[], seq_max bigint, caught_up bigint, at_time timestamptz, at_rv text, old_seq bigint)
RETURNS TABLE (object_id bigint, seq bigint, observed_at timestamptz, occurred_at timestamptz, version text, resource_version text, object jsonb)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
DECLARE
    pending bigint[] := ARRAY(SELECT o FROM unnest(objects) o ORDER BY o);
    found   bigint[];
    seq_end bigint := greatest(seq_max, caught_up);
    partitions text[] := ARRAY(SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'kuberewind.deltas_data'::regclass);
    day     record;
    r       record;
    doc     jsonb;
BEGIN
    FOR day IN SELECT y.* FROM kuberewind.record_days y WHERE y.cluster = of_cluster AND y.first_seq <= seq_end ORDER BY y.day DESC LOOP
        EXIT WHEN cardinality(pending) = 0 OR day.last_seq < pending[1];
        -- A day without its partition looks like a day without changes, and the answer would be an older version. A partition that
        -- is attached under another name is read.
        IF to_char(day.day, '"deltas_p"YYYYMMDD') <> ALL (partitions) THEN
            IF NOT EXISTS (SELECT FROM kuberewind.record_deltas x WHERE x.cluster = of_cluster AND x.observed_at BETWEEN day.first_at AND day.last_at) THEN
                RAISE EXCEPTION 'the deltas of % (seq % to %) are not on record: is the partition of its day gone?', day.day, day.first_seq, day.last_seq
                    USING ERRCODE = 'data_exception', HINT = 'Attach it again, or ask for an instant that does not need it.';
            END IF;
        END IF;
        -- For few objects, this look costs a fifth of the query that folds.
        IF cardinality(pending) < 10 THEN
            CONTINUE WHEN NOT EXISTS (
                SELECT FROM kuberewind.record_deltas x
                WHERE x.cluster = of_cluster AND x.object_id = ANY (pending) AND x.seq <= seq_end AND x.observed_at BETWEEN day.first_at AND day.last_at
                  AND (x.seq <= seq_max OR x.occurred_at <= at_time)
                  AND (at_rv IS NULL OR x.seq <= old_seq OR (length(x.rv), x.rv COLLATE "C") <= (length(at_rv), at_rv COLLATE "C")));
        END IF;
        found := '{}';
        FOR r IN
            SELECT d.*, newest.seq AS newest, newest.type AS last_type
            FROM unnest(pending) o (id)
            CROSS JOIN LATERAL (
                SELECT x.seq, x.type FROM kuberewind.record_deltas x
                WHERE x.cluster = of_cluster AND x.object_id = o.id AND x.seq <= seq_end AND x.observed_at BETWEEN day.first_at AND day.last_at
                  AND (x.seq <= seq_max OR x.occurred_at <= at_time)
                  AND (at_rv IS NULL OR x.seq <= old_seq OR (length(x.rv), x.rv COLLATE "C") <= (length(at_rv), at_rv COLLATE "C"))
                ORDER BY x.seq DESC LIMIT 1
            ) newest
            LEFT JOIN LATERAL (
                SELECT x.seq FROM kuberewind.record_deltas x
                WHERE newest.type <> 3 AND x.cluster = of_cluster AND x.object_id = o.id AND x.seq <= newest.seq AND x.object IS NOT NULL
                  AND x.observed_at BETWEEN day.first_at AND day.last_at
                ORDER BY x.seq DESC LIMIT 1
            ) keyframe ON true
            CROSS JOIN LATERAL (
                SELECT x.* FROM kuberewind.record_deltas x
                WHERE x.cluster = of_cluster AND x.object_id = o.id AND x.seq BETWEEN coalesce(keyframe.seq, newest.seq) AND newest.seq
                  AND x.observed_at BETWEEN day.first_at AND day.last_at
            ) d
            ORDER BY o.id, d.seq
        LOOP
            IF r.last_type <> 3 THEN
                doc := kuberewind.record_version(doc, r.seq, r.rv, r.patch, r.object);
            END IF;
            CONTINUE WHEN r.seq < r.newest;
            found := found || r.object_id;
            object := doc;
            doc := NULL;
            CONTINUE WHEN r.last_type = 3 OR (length(r.rv), r.rv COLLATE "C") > (length(at_rv), at_rv COLLATE "C");
            object_id := r.object_id;
            seq := r.seq;
            observed_at := r.observed_at;
            occurred_at := r.occurred_at;
            version := r.version;
            resource_version := r.rv;
            RETURN NEXT;
        END LOOP;
        IF cardinality(found) > 0 THEN
            pending := ARRAY(SELECT o FROM unnest(pending) o EXCEPT SELECT o FROM unnest(found) o ORDER BY 1);
        END IF;
    END LOOP;
    IF at_rv IS NULL AND pending[1] <= seq_max THEN
        RAISE EXCEPTION 'no delta of the life % is on record up to seq %: is the partition of its day gone?', pending[1], seq_max USING ERRCODE = 'data_exception';
    END IF;
END $$;
COMMENT ON FUNCTION kuberewind.record_fold(integer, bigint[], bigint, bigint, timestamptz, text, bigint) IS 'For the functions of this schema, and not a contract: for each of these lives, the version at a point, if it was alive then.';

CREATE FUNCTION kuberewind.record_version(doc jsonb, of_seq bigint, rv text, patch jsonb, object json) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF object IS NOT NULL THEN
        RETURN object::jsonb;
    ELSIF patch IS NULL THEN
        RETURN doc; -- an inferred delete: the last that is known
    ELSIF doc IS NULL THEN
        RAISE EXCEPTION 'there is no keyframe before it' USING ERRCODE = 'data_exception';
    END IF;
    IF rv <> '' THEN
        doc := jsonb_set(doc, '{metadata,resourceVersion}', to_jsonb(rv), false);
    END IF;
    RETURN kuberewind.apply_patch(doc, patch);
EXCEPTION WHEN data_exception THEN
    RAISE EXCEPTION 'the delta with seq % cannot be folded: %', of_seq, SQLERRM
        USING ERRCODE = 'data_corrupted', HINT = 'replay verify says what is damaged; from the next row with an object on, it can be read again.';
END $$;
COMMENT ON FUNCTION kuberewind.record_version(jsonb, bigint, text, jsonb, json) IS 'For the functions of this schema, and not a contract: the version after a delta, from the previous version. A patch that does not apply is an error that names the seq.';

CREATE FUNCTION kuberewind.record_object_at(of_cluster integer, of_group text, of_resource text, of_namespace text, of_name text,
    by_time timestamptz, by_seq bigint, by_rv text) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    streams integer[] := kuberewind.record_streams_of(of_cluster, of_group, of_resource, of_namespace, true);
    point   record;
    lives   bigint[];
    answer  jsonb;
BEGIN
    FOR point IN SELECT * FROM kuberewind.record_points(of_cluster, streams, by_time, by_seq, by_rv) LOOP
        SELECT array_agg(l.object_id) INTO lives FROM kuberewind.record_lives l
        WHERE l.name = of_name AND l.namespace = coalesce(of_namespace, '') AND l.cluster = of_cluster AND l.stream = point.stream
          AND l.object_id <= greatest(point.seq_max, point.caught_up)
          AND (by_rv IS NOT NULL OR l.deleted_seq IS NULL OR l.deleted_seq > point.seq_max)
          AND (point.caught_up <= point.seq_max OR NOT EXISTS ( -- another of its name has begun, so it has ended, although that may seem to be later
            SELECT FROM kuberewind.record_lives n
            JOIN kuberewind.record_deltas x ON x.cluster = n.cluster AND x.object_id = n.object_id
            WHERE n.cluster = of_cluster AND n.stream = l.stream AND n.namespace = l.namespace AND n.name = l.name
              AND n.object_id > greatest(l.object_id, point.seq_max) AND n.object_id <= point.caught_up
              AND x.seq <= point.caught_up AND x.occurred_at <= point.at_time AND x.observed_at > point.at_time));
        CONTINUE WHEN lives IS NULL;
        SELECT f.object INTO answer
        FROM kuberewind.record_fold(of_cluster, lives, point.seq_max, point.caught_up, point.at_time, point.at_rv, point.old_seq) f
        ORDER BY f.object_id DESC LIMIT 1;
        EXIT WHEN answer IS NOT NULL;
    END LOOP;
    RETURN answer;
END $$;
COMMENT ON FUNCTION kuberewind.record_object_at(integer, text, text, text, text, timestamptz, bigint, text) IS 'For the functions of this schema, and not a contract: object_at for any kind of instant.';

CREATE FUNCTION kuberewind.object_at(cluster text, "group" text, resource text, namespace text, name text, at timestamptz) RETURNS jsonb
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
RETURN kuberewind.record_object_at(kuberewind.record_cluster($1), $2, $3, $4, $5, $6, NULL, NULL);
COMMENT ON FUNCTION kuberewind.object_at(text, text, text, text, text, timestamptz) IS 'The object as it was at an instant, which is included; NULL if it did not exist. cluster may be '''' if the record holds only one; "group" is '''' for the core group, or NULL for any group that has the resource; namespace is '''' for cluster-scoped objects. An instant before the record is an error; a WARNING says when the answer is an estimate (a pause), may lack a version (a gap), or lies after the record.';

CREATE FUNCTION kuberewind.object_at(cluster text, "group" text, resource text, namespace text, name text, at text) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    i record;
BEGIN
    SELECT * INTO i FROM kuberewind.record_instant($6);
    RETURN kuberewind.record_object_at(kuberewind.record_cluster($1), $2, $3, $4, $5, i.at_time, i.at_seq, i.at_rv);
END $$;
COMMENT ON FUNCTION kuberewind.object_at(text, text, text, text, text, text) IS 'The same for an instant as text: RFC 3339, a duration before now such as -10m or -2d, seq:N, rv:N or now.';

-- A type, because the columns of a RETURNS TABLE cannot have the names of the arguments.
CREATE TYPE kuberewind.snapshot AS (
    api_group text, version text, resource text, kind text, namespace text, name text, uid text, resource_version text, object jsonb,
    seq bigint, object_id bigint, observed_at timestamptz, occurred_at timestamptz
);
COMMENT ON TYPE kuberewind.snapshot IS 'A row of snapshot_at.';
COMMENT ON COLUMN kuberewind.snapshot.api_group IS 'API group, '''' for the core group.';
COMMENT ON COLUMN kuberewind.snapshot.version IS 'API version in which the object was served.';
COMMENT ON COLUMN kuberewind.snapshot.resource IS 'Resource: the plural name, as in URLs.';
COMMENT ON COLUMN kuberewind.snapshot.kind IS 'Kind.';
COMMENT ON COLUMN kuberewind.snapshot.namespace IS 'Namespace, '''' for cluster-scoped objects.';
COMMENT ON COLUMN kuberewind.snapshot.name IS 'Name, cut with a digest at its end if it has more than 1,024 bytes.';
COMMENT ON COLUMN kuberewind.snapshot.uid IS 'UID: identifies one life of the object.';
COMMENT ON COLUMN kuberewind.snapshot.resource_version IS 'Resource version.';
COMMENT ON COLUMN kuberewind.snapshot.object IS 'The whole object.';
COMMENT ON COLUMN kuberewind.snapshot.seq IS 'Number of its last delta at the instant.';
COMMENT ON COLUMN kuberewind.snapshot.object_id IS 'Number of the life within its cluster.';
COMMENT ON COLUMN kuberewind.snapshot.observed_at IS 'When the recorder saw that delta.';
COMMENT ON COLUMN kuberewind.snapshot.occurred_at IS 'Best evidence of when it happened, as in deltas.';

CREATE FUNCTION kuberewind.record_snapshot_at(of_cluster integer, of_group text, of_resource text, of_namespace text, by_time timestamptz, by_seq bigint, by_rv text)
RETURNS SETOF kuberewind.snapshot
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
DECLARE
    chosen integer[];
    point  record;
    lives  bigint[];
BEGIN
    IF of_resource IS NULL AND by_rv IS NOT NULL THEN
        RAISE EXCEPTION 'resource versions are compared within one resource: name one' USING ERRCODE = 'invalid_parameter_value';
    ELSIF of_resource IS NOT NULL THEN
        chosen := kuberewind.record_streams_of(of_cluster, of_group, of_resource, of_namespace, false);
    ELSE
        SELECT array_agg(s.stream) INTO chosen FROM kuberewind.record_streams s
        WHERE s.cluster = of_cluster AND s.api_group = coalesce(of_group, s.api_group) AND s.scope IN ('', coalesce(of_namespace, s.scope));
        IF chosen IS NULL THEN
            RAISE EXCEPTION 'the record holds nothing of the group %', quote_nullable(of_group) USING ERRCODE = 'invalid_parameter_value',
                HINT = 'All of them: SELECT DISTINCT cluster, api_group, resource FROM kuberewind.coverage';
        END IF;
    END IF;
    FOR point IN
        SELECT array_agg(p.stream) AS streams, p.seq_max, p.caught_up, p.at_time, p.at_rv, p.old_seq
        FROM kuberewind.record_points(of_cluster, chosen, by_time, by_seq, by_rv) p
        GROUP BY p.seq_max, p.caught_up, p.at_time, p.at_rv, p.old_seq
    LOOP
        lives := ARRAY(
            SELECT l.object_id FROM kuberewind.record_lives l
            WHERE l.cluster = of_cluster AND l.stream = ANY (point.streams) AND l.object_id <= greatest(point.seq_max, point.caught_up)
              AND (by_rv IS NOT NULL OR l.deleted_seq IS NULL OR l.deleted_seq > point.seq_max)
              AND (of_namespace IS NULL OR l.namespace = of_namespace)
              AND (point.caught_up <= point.seq_max OR NOT EXISTS ( -- another of its name has begun, so it has ended, although that may seem to be later
                SELECT FROM kuberewind.record_lives n
                JOIN kuberewind.record_deltas x ON x.cluster = n.cluster AND x.object_id = n.object_id
                WHERE n.cluster = of_cluster AND n.stream = l.stream AND n.namespace = l.namespace AND n.name = l.name
                  AND n.object_id > greatest(l.object_id, point.seq_max) AND n.object_id <= point.caught_up
                  AND x.seq <= point.caught_up AND x.occurred_at <= point.at_time AND x.observed_at > point.at_time)));
        RETURN QUERY
        SELECT s.api_group, f.version, s.resource, s.kind, l.namespace, l.name, l.uid, f.resource_version, f.object, f.seq, f.object_id, f.observed_at, f.occurred_at
        FROM kuberewind.record_fold(of_cluster, lives, point.seq_max, point.caught_up, point.at_time, point.at_rv, point.old_seq) f
        JOIN kuberewind.record_lives l ON l.cluster = of_cluster AND l.object_id = f.object_id
        JOIN kuberewind.record_streams s ON s.cluster = of_cluster AND s.stream = l.stream;
    END LOOP;
END $$;
COMMENT ON FUNCTION kuberewind.record_snapshot_at(integer, text, text, text, timestamptz, bigint, text) IS 'For the functions of this schema, and not a contract: snapshot_at for any kind of instant.';

CREATE FUNCTION kuberewind.snapshot_at(cluster text, at timestamptz, "group" text DEFAULT NULL, resource text DEFAULT NULL, namespace text DEFAULT NULL)
RETURNS SETOF kuberewind.snapshot
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT * FROM kuberewind.record_snapshot_at(kuberewind.record_cluster($1), $3, $4, $5, $2, NULL, NULL);
END;
COMMENT ON FUNCTION kuberewind.snapshot_at(text, timestamptz, text, text, text) IS 'All objects that were alive at an instant, which is included, or those of a group, resource or namespace (NULL for any). It is slow: PostgreSQL folds some thousand objects a second; replay reads a cluster of any size from a checkpoint. Errors and warnings are those of object_at.';

CREATE FUNCTION kuberewind.snapshot_at(cluster text, at text, "group" text DEFAULT NULL, resource text DEFAULT NULL, namespace text DEFAULT NULL)
RETURNS SETOF kuberewind.snapshot
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    i record;
BEGIN
    SELECT * INTO i FROM kuberewind.record_instant($2);
    RETURN QUERY SELECT * FROM kuberewind.record_snapshot_at(kuberewind.record_cluster($1), $3, $4, $5, i.at_time, i.at_seq, i.at_rv);
END $$;
COMMENT ON FUNCTION kuberewind.snapshot_at(text, text, text, text, text) IS 'The same for an instant as text, as in object_at; rv:N needs a resource.';

-- Both bounds are included. Bounds by resource version count within the name's history, in which versions rise.
CREATE FUNCTION kuberewind.record_history(of_cluster integer, of_group text, of_resource text, of_namespace text, of_name text,
    from_time timestamptz, from_seq bigint, from_rv text, to_time timestamptz, to_seq bigint, to_rv text)
RETURNS TABLE (seq bigint, observed_at timestamptz, occurred_at timestamptz, type text, source text, version text, resource_version text,
    manager text, manager_evidence text, manager_hint text, subresource text, uid text, patch jsonb, object jsonb, object_id bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
DECLARE
    streams integer[] := kuberewind.record_streams_of(of_cluster, of_group, of_resource, of_namespace, true);
    partitions text[] := ARRAY(SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'kuberewind.deltas_data'::regclass);
    life    record;
    day     record;
    d       record;
BEGIN
    FOR life IN
        SELECT l.object_id, l.uid, l.deleted_seq FROM kuberewind.record_lives l
        WHERE l.name = of_name AND l.namespace = coalesce(of_namespace, '') AND l.cluster = of_cluster AND l.stream = ANY (streams)
          AND (l.object_id <= to_seq OR to_seq IS NULL) AND (l.deleted_seq >= from_seq OR l.deleted_seq IS NULL OR from_seq IS NULL)
        ORDER BY l.object_id
    LOOP
        object_id := life.object_id;
        uid := life.uid;
        object := NULL;
        FOR day IN
            SELECT y.* FROM kuberewind.record_days y
            WHERE y.cluster = of_cluster AND y.last_seq >= life.object_id AND (y.first_seq <= life.deleted_seq OR life.deleted_seq IS NULL)
              AND (y.last_at >= from_time OR from_time IS NULL) AND (y.first_at <= to_time OR to_time IS NULL)
              AND (y.last_seq >= from_seq OR from_seq IS NULL) AND (y.first_seq <= to_seq OR to_seq IS NULL)
            ORDER BY y.day
        LOOP
            FOR d IN
                SELECT x.* FROM kuberewind.record_deltas x
                WHERE x.cluster = of_cluster AND x.object_id = life.object_id AND x.observed_at BETWEEN day.first_at AND day.last_at
                ORDER BY x.seq
            LOOP
                object := kuberewind.record_version(object, d.seq, d.rv, d.patch, d.object);
                CONTINUE WHEN d.observed_at < from_time OR d.seq < from_seq OR (length(d.rv), d.rv COLLATE "C") < (length(from_rv), from_rv COLLATE "C")
                    OR d.observed_at > to_time OR d.seq > to_seq OR (length(d.rv), d.rv COLLATE "C") > (length(to_rv), to_rv COLLATE "C");
                seq := d.seq;
                observed_at := d.observed_at;
                occurred_at := d.occurred_at;
                type := CASE d.type WHEN 1 THEN 'Added' WHEN 2 THEN 'Updated' WHEN 3 THEN 'Deleted' WHEN 4 THEN 'Sync' ELSE d.type::text END;
                source := CASE d.source WHEN 1 THEN 'watch' WHEN 2 THEN 'list' WHEN 3 THEN 'relist'
                    WHEN 4 THEN 'resync' WHEN 5 THEN 'schema' WHEN 6 THEN 'inferred' ELSE d.source::text END;
                version := d.version;
                resource_version := d.rv;
                manager := d.manager;
                manager_evidence := CASE d.manager_evidence WHEN 1 THEN 'entry' WHEN 2 THEN 'owner' WHEN 3 THEN 'none' ELSE d.manager_evidence::text END;
                manager_hint := d.manager_hint;
                subresource := d.subresource;
                patch := d.patch;
                RETURN NEXT;
            END LOOP;
            IF NOT FOUND AND to_char(day.day, '"deltas_p"YYYYMMDD') <> ALL (partitions) THEN
                IF NOT EXISTS (SELECT FROM kuberewind.record_deltas x WHERE x.cluster = of_cluster AND x.observed_at BETWEEN day.first_at AND day.last_at) THEN
                    RAISE WARNING 'the deltas of % (seq % to %) are not on record: is the partition of its day gone? Versions of that day are missing',
                        day.day, day.first_seq, day.last_seq;
                END IF;
            END IF;
        END LOOP;
    END LOOP;
END $$;
COMMENT ON FUNCTION kuberewind.record_history(integer, text, text, text, text, timestamptz, bigint, text, timestamptz, bigint, text) IS 'For the functions of this schema, and not a contract: history for any kind of bounds.';

CREATE FUNCTION kuberewind.history(cluster text, "group" text, resource text, namespace text, name text, "from" timestamptz DEFAULT NULL, "to" timestamptz DEFAULT NULL)
RETURNS TABLE (seq bigint, observed_at timestamptz, occurred_at timestamptz, type text, source text, version text, resource_version text,
    manager text, manager_evidence text, manager_hint text, subresource text, uid text, patch jsonb, object jsonb, object_id bigint)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT * FROM kuberewind.record_history(kuberewind.record_cluster($1), $2, $3, $4, $5, $6, NULL, NULL, $7, NULL, NULL);
END;
COMMENT ON FUNCTION kuberewind.history(text, text, text, text, text, timestamptz, timestamptz) IS 'Every version of an object in the order recorded, with the patch that made it and the whole object after it (of a delete: as it was deleted); all lives of the name, by uid. Bounds are included, on observed_at; NULL does not bound.';

CREATE FUNCTION kuberewind.history(cluster text, "group" text, resource text, namespace text, name text, "from" text, "to" text DEFAULT NULL)
RETURNS TABLE (seq bigint, observed_at timestamptz, occurred_at timestamptz, type text, source text, version text, resource_version text,
    manager text, manager_evidence text, manager_hint text, subresource text, uid text, patch jsonb, object jsonb, object_id bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a record;
    b record;
BEGIN
    -- now stands for no bound: clocks may differ.
    SELECT * INTO a FROM kuberewind.record_instant(coalesce($6, 'seq:0'));
    SELECT * INTO b FROM kuberewind.record_instant(coalesce(nullif($7, 'now'), 'seq:999999999999999999'));
    RETURN QUERY SELECT * FROM kuberewind.record_history(kuberewind.record_cluster($1), $2, $3, $4, $5, a.at_time, a.at_seq, a.at_rv, b.at_time, b.at_seq, b.at_rv);
END $$;
COMMENT ON FUNCTION kuberewind.history(text, text, text, text, text, text, text) IS 'The same with bounds as text, as in object_at.';

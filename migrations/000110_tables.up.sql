-- The tables: what the API server served, in the order in which it served it.
--
-- Every key begins with the cluster. deltas_data and batches have no sequence, trigger, foreign key or unique
-- constraint. The compare-and-swap on heads keeps the record exact (I1). Each migration file is one transaction and
-- replaces schema_version() in it. So that function says which migrations were applied.

CREATE SCHEMA IF NOT EXISTS kuberewind;
COMMENT ON SCHEMA kuberewind IS 'Every change of every object of the recorded Kubernetes clusters. Read the views deltas, changes, objects, gaps, pauses, clock_steps, recorders, prunes, erasures, coverage and server, and call the functions object_at, snapshot_at and history; \d+ and \df+ explain them.';

CREATE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 110;
COMMENT ON FUNCTION kuberewind.schema_version() IS 'The number of the last migration that was applied. It changes in the transaction of the migration itself.';

-- A recorder registers its cluster with an INSERT of the highest number plus one. On a duplicate (23505) it retries,
-- because the writer may not LOCK this table.
CREATE TABLE kuberewind.clusters (
    cluster         integer     NOT NULL PRIMARY KEY,
    uid             text        NOT NULL UNIQUE,
    name            text        NOT NULL UNIQUE,
    registered_at   timestamptz NOT NULL,
    key_fingerprint bytea       NOT NULL
);
COMMENT ON TABLE kuberewind.clusters IS 'The clusters of this record.';
COMMENT ON COLUMN kuberewind.clusters.cluster IS 'Number of the cluster in this record; every key begins with it.';
COMMENT ON COLUMN kuberewind.clusters.uid IS 'Identity of the cluster: the UID of its namespace kube-system.';
COMMENT ON COLUMN kuberewind.clusters.name IS 'Name under which the views show the cluster; the operator chooses it.';
COMMENT ON COLUMN kuberewind.clusters.registered_at IS 'When a recorder first wrote for this cluster.';
COMMENT ON COLUMN kuberewind.clusters.key_fingerprint IS 'Fingerprint of the key that hides the values of Secrets (I9); a recorder with another key is refused. The key itself is not in the database.';

CREATE TABLE kuberewind.heads (
    cluster     integer     NOT NULL PRIMARY KEY,
    epoch       bigint      NOT NULL,
    seq         bigint      NOT NULL,
    batch       bigint      NOT NULL,
    digest      bytea       NOT NULL,
    observed_at timestamptz NOT NULL,
    spool       bytea,
    spool_next  bigint,
    verified_at timestamptz NOT NULL
) WITH (fillfactor = 10); -- updated by every commit: the free space keeps the versions of a row on its page
COMMENT ON TABLE kuberewind.heads IS 'Where each cluster''s record ends. Every commit moves this row first, by compare-and-swap on epoch, seq and batch (I1).';
COMMENT ON COLUMN kuberewind.heads.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.heads.epoch IS 'The writer that holds the cluster now; the commits of any other fail.';
COMMENT ON COLUMN kuberewind.heads.seq IS 'seq of the last delta.';
COMMENT ON COLUMN kuberewind.heads.batch IS 'Number of the last commit.';
COMMENT ON COLUMN kuberewind.heads.digest IS 'Digest of the last batch, to which the next one is chained.';
COMMENT ON COLUMN kuberewind.heads.observed_at IS 'observed_at of the last commit: the recorder was watching until then.';
COMMENT ON COLUMN kuberewind.heads.spool IS 'Identity of the spool of the recorder that committed last (I7). NULL without a spool, and after an erasure.';
COMMENT ON COLUMN kuberewind.heads.spool_next IS 'Number of the first entry that is not on record, of all that the recorder queued under that identity.';
COMMENT ON COLUMN kuberewind.heads.verified_at IS 'The recorder has compared samples of everything observed before then with etcd again, and found no rollback. A recorder that takes over compares what was observed since.';

CREATE TABLE kuberewind.epochs (
    cluster    integer     NOT NULL,
    epoch      bigint      NOT NULL,
    started_at timestamptz NOT NULL,
    after_seq  bigint      NOT NULL,
    recorder   text        NOT NULL,
    version    text        NOT NULL,
    config     jsonb       NOT NULL,
    PRIMARY KEY (cluster, epoch)
);
COMMENT ON TABLE kuberewind.epochs IS 'Which writer held a cluster, from which seq on, and with which configuration. The configuration says what was excluded on purpose.';
COMMENT ON COLUMN kuberewind.epochs.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.epochs.epoch IS 'Number of the writer, rising by one with each that takes over.';
COMMENT ON COLUMN kuberewind.epochs.started_at IS 'When it took over.';
COMMENT ON COLUMN kuberewind.epochs.after_seq IS 'Last seq of the previous writer; its own deltas follow.';
COMMENT ON COLUMN kuberewind.epochs.recorder IS 'Name of the process that wrote (host and process).';
COMMENT ON COLUMN kuberewind.epochs.version IS 'Version of the recorder.';
COMMENT ON COLUMN kuberewind.epochs.config IS 'Its configuration, without passwords: which resources, namespaces and labels were included and excluded.';

-- Recorders use these two tables before they read the version of the schema. So later versions must keep the columns.
CREATE TABLE kuberewind.leaders (
    cluster_uid text        NOT NULL PRIMARY KEY,
    holder      text        NOT NULL,
    token       text        NOT NULL,
    renewed_at  timestamptz NOT NULL,
    term        interval    NOT NULL
) WITH (fillfactor = 50); -- updated once a second: the free space keeps the versions of a row on its page
COMMENT ON TABLE kuberewind.leaders IS 'Which recorder may record a cluster. The compare-and-swap on heads, not this table, keeps two recorders from both writing (I1).';
COMMENT ON COLUMN kuberewind.leaders.cluster_uid IS 'The cluster, as in clusters.uid: the first leader comes before the cluster has a number.';
COMMENT ON COLUMN kuberewind.leaders.holder IS 'Name of the leader (host and process).';
COMMENT ON COLUMN kuberewind.leaders.token IS 'Identifies the leader among all processes, even those with the same name.';
COMMENT ON COLUMN kuberewind.leaders.renewed_at IS 'When the leader last renewed the row, by the clock of the database; -infinity if it released the row.';
COMMENT ON COLUMN kuberewind.leaders.term IS 'How long after renewed_at another recorder may take the row.';

CREATE TABLE kuberewind.standbys (
    cluster_uid text        NOT NULL,
    recorder    text        NOT NULL,
    seen_at     timestamptz NOT NULL,
    term        interval    NOT NULL,
    PRIMARY KEY (cluster_uid, recorder)
) WITH (fillfactor = 50);
COMMENT ON TABLE kuberewind.standbys IS 'Which recorders stand by for a cluster.';
COMMENT ON COLUMN kuberewind.standbys.cluster_uid IS 'The cluster, as in leaders.';
COMMENT ON COLUMN kuberewind.standbys.recorder IS 'Name of the recorder (host and process).';
COMMENT ON COLUMN kuberewind.standbys.seen_at IS 'When it last reported that it stands by, by the clock of the database.';
COMMENT ON COLUMN kuberewind.standbys.term IS 'How often it reports.';

CREATE TABLE kuberewind.streams (
    cluster        integer     NOT NULL,
    stream         integer     NOT NULL,
    api_group      text        NOT NULL,
    resource       text        NOT NULL,
    scope          text        NOT NULL,
    version        text        NOT NULL,
    kind           text        NOT NULL,
    namespaced     boolean     NOT NULL,
    started_at     timestamptz NOT NULL,
    state          text        NOT NULL,
    state_since    timestamptz NOT NULL,
    detail         text        NOT NULL,
    filter         text        NOT NULL,
    position       text,
    last_rv        text,
    last_seq       bigint      NOT NULL,
    synced         boolean     NOT NULL,
    bookmarks      boolean     NOT NULL,
    positioned_at  timestamptz NOT NULL,
    schema         text        NOT NULL DEFAULT '',
    PRIMARY KEY (cluster, stream),
    UNIQUE (cluster, api_group, resource, scope)
) WITH (fillfactor = 50); -- the columns that every commit updates are in no index, so the updates stay on the page
COMMENT ON TABLE kuberewind.streams IS 'The list-watches: one row for each resource of a cluster, or for each namespace of it.';
COMMENT ON COLUMN kuberewind.streams.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.streams.stream IS 'Number of the stream within its cluster.';
COMMENT ON COLUMN kuberewind.streams.api_group IS 'API group, '''' for the core group.';
COMMENT ON COLUMN kuberewind.streams.resource IS 'Resource: the plural name, as in URLs.';
COMMENT ON COLUMN kuberewind.streams.scope IS 'Namespace to which the list-watch is confined, '''' for all.';
COMMENT ON COLUMN kuberewind.streams.version IS 'API version of the last request to the server.';
COMMENT ON COLUMN kuberewind.streams.kind IS 'Kind of its objects.';
COMMENT ON COLUMN kuberewind.streams.namespaced IS 'Whether its objects live in namespaces.';
COMMENT ON COLUMN kuberewind.streams.started_at IS 'When it was first recorded.';
COMMENT ON COLUMN kuberewind.streams.state IS 'What it is doing now: listing, live, or interrupted.';
COMMENT ON COLUMN kuberewind.streams.state_since IS 'When that state began.';
COMMENT ON COLUMN kuberewind.streams.detail IS 'What the server or the recorder says about that state.';
COMMENT ON COLUMN kuberewind.streams.filter IS 'The filter under which it is recorded, '''' for none; when it changes, the stream is listed again.';
COMMENT ON COLUMN kuberewind.streams.position IS 'Resource version from which a watch can continue without missing anything; NULL before the first list is complete.';
COMMENT ON COLUMN kuberewind.streams.last_rv IS 'Newest resource version that the server sent it, by a delta or by a bookmark.';
COMMENT ON COLUMN kuberewind.streams.last_seq IS 'seq of its last recorded delta, 0 before the first.';
COMMENT ON COLUMN kuberewind.streams.synced IS 'Whether the position can be resumed from: false before the first list is complete, and while only a part of a later list is on record.';
COMMENT ON COLUMN kuberewind.streams.bookmarks IS 'Whether the server has sent it a bookmark.';
COMMENT ON COLUMN kuberewind.streams.positioned_at IS 'observed_at of the item that last moved the position.';
COMMENT ON COLUMN kuberewind.streams.schema IS 'Schema under which its objects were last compared with the server''s: API version, digest of the definition, release of the server. '''' if unknown. When it changes, they are compared again (source schema).';

CREATE TABLE kuberewind.lives (
    cluster     integer NOT NULL,
    object_id   bigint  NOT NULL,
    stream      integer NOT NULL,
    namespace   text    NOT NULL,
    name        text    NOT NULL,
    uid         text    NOT NULL,
    owners      text[],
    PRIMARY KEY (cluster, object_id)
);
-- Auditors look lives up by these two indexes. Only these do not begin with the cluster: they are no keys, and a query
-- need not name the cluster. The namespace comes before the name: all lives of one namespace stand together, sorted by
-- name.
CREATE INDEX lives_by_name ON kuberewind.lives (namespace, name, cluster, stream);
-- No query sorts by UID. So an entry holds four bytes of hash instead of the text. Only an aggregated API may serve
-- objects without a UID; their lives share one bucket, whose pages hold some 400 entries each.
CREATE INDEX lives_by_uid ON kuberewind.lives USING hash (uid);
COMMENT ON TABLE kuberewind.lives IS 'The lives of objects: one row from creation to deletion, by UID (I5). An object that is deleted and made again under its name has two.';
COMMENT ON COLUMN kuberewind.lives.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.lives.object_id IS 'Number of the life within its cluster: the seq of its first delta.';
COMMENT ON COLUMN kuberewind.lives.stream IS 'The stream that served it.';
COMMENT ON COLUMN kuberewind.lives.namespace IS 'Namespace, '''' for cluster-scoped objects.';
COMMENT ON COLUMN kuberewind.lives.name IS 'Name. A name of more than 1,024 bytes is cut, and ends in … and a digest: the object has the whole name. U+FFFD stands for NUL.';
COMMENT ON COLUMN kuberewind.lives.uid IS 'UID, as the API server served it.';
COMMENT ON COLUMN kuberewind.lives.owners IS 'UIDs of the ownerReferences of its first version, the controller first; NULL for none. Derived, and in no digest: replay verify compares them with that version. Later owners are in patches.';

-- The end of a life is a row of its own, so rows of lives are never updated. An update would write a new version of the
-- row, and an entry into each index of the table.
CREATE TABLE kuberewind.ends (
    cluster   integer NOT NULL,
    object_id bigint  NOT NULL,
    seq       bigint  NOT NULL,
    PRIMARY KEY (cluster, object_id)
);
COMMENT ON TABLE kuberewind.ends IS 'The ends of lives. A life without a row here has not ended.';
COMMENT ON COLUMN kuberewind.ends.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.ends.object_id IS 'Number of the life.';
COMMENT ON COLUMN kuberewind.ends.seq IS 'seq of the delta that ended it.';

-- A recorder loads this table when it starts. Without it, the recorder would read every life on record. One transaction
-- writes it together with lives and ends.
CREATE TABLE kuberewind.living (
    cluster   integer NOT NULL,
    stream    integer NOT NULL,
    object_id bigint  NOT NULL,
    PRIMARY KEY (cluster, stream, object_id)
);
COMMENT ON TABLE kuberewind.living IS 'The lives that have not ended: those without a row in ends.';
COMMENT ON COLUMN kuberewind.living.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.living.stream IS 'The stream that served it, as in lives.';
COMMENT ON COLUMN kuberewind.living.object_id IS 'Number of the life.';

CREATE TABLE kuberewind.exclusions (
    cluster     integer     NOT NULL,
    stream      integer     NOT NULL,
    uid         text        NOT NULL,
    namespace   text        NOT NULL,
    name        text        NOT NULL,
    excluded_at timestamptz NOT NULL,
    PRIMARY KEY (cluster, stream, uid)
);
COMMENT ON TABLE kuberewind.exclusions IS 'Living objects that a label filter excludes. The decision holds for the whole life, across restarts; the row is removed when the life ends.';
COMMENT ON COLUMN kuberewind.exclusions.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.exclusions.stream IS 'The stream that served it.';
COMMENT ON COLUMN kuberewind.exclusions.uid IS 'UID of the object.';
COMMENT ON COLUMN kuberewind.exclusions.namespace IS 'Namespace, '''' for cluster-scoped objects.';
COMMENT ON COLUMN kuberewind.exclusions.name IS 'Name.';
COMMENT ON COLUMN kuberewind.exclusions.excluded_at IS 'When the decision was taken.';

-- Numbers of one width stand together, so that alignment wastes no byte.
CREATE TABLE kuberewind.deltas_data (
    cluster          integer     NOT NULL,
    stream           integer     NOT NULL,
    seq              bigint      NOT NULL,
    object_id        bigint      NOT NULL,
    observed_at      timestamptz NOT NULL,
    occurred_at      timestamptz NOT NULL,
    type             smallint    NOT NULL,
    source           smallint    NOT NULL,
    manager_evidence smallint,
    rv               text        NOT NULL,
    version          text        NOT NULL,
    manager          text,
    manager_hint     text,
    subresource      text,
    digest           bytea       NOT NULL,
    patch            jsonb,
    object           json,
    exact            bytea
) PARTITION BY RANGE (observed_at);
CREATE INDEX deltas_by_seq ON kuberewind.deltas_data (cluster, seq);
CREATE INDEX deltas_by_object ON kuberewind.deltas_data (cluster, object_id, seq);
-- After the first row of a life, few rows can change the owners: patches of the ownerReferences, and keyframes without
-- a patch. Without this index, a query for the objects adopted in a namespace reads all patches of the namespace. Such
-- a query must repeat this condition.
CREATE INDEX deltas_by_owners ON kuberewind.deltas_data (cluster, seq)
    WHERE seq <> object_id AND (patch @? '$[*].path ? (@ starts with "/metadata/ownerReferences")' OR patch IS NULL AND object IS NOT NULL);
COMMENT ON TABLE kuberewind.deltas_data IS 'Every change of every object. Rows are immutable (I8); the view deltas shows them with their names. One partition for each UTC day of observed_at.';
COMMENT ON COLUMN kuberewind.deltas_data.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.deltas_data.stream IS 'The stream that served it.';
COMMENT ON COLUMN kuberewind.deltas_data.seq IS 'Number of the delta within its cluster: from 1, without holes, never used again.';
COMMENT ON COLUMN kuberewind.deltas_data.object_id IS 'The life that it belongs to; its first delta has seq = object_id.';
COMMENT ON COLUMN kuberewind.deltas_data.observed_at IS 'When the recorder saw it. Does not decrease with seq.';
COMMENT ON COLUMN kuberewind.deltas_data.occurred_at IS 'Best evidence of when it happened: observed_at, but an estimate for changes that were caught up after a pause.';
COMMENT ON COLUMN kuberewind.deltas_data.type IS '1 Added, 2 Updated, 3 Deleted, 4 Sync.';
COMMENT ON COLUMN kuberewind.deltas_data.source IS '1 watch, 2 list, 3 relist, 4 resync, 5 schema, 6 inferred.';
COMMENT ON COLUMN kuberewind.deltas_data.rv IS 'Resource version; for an inferred delete, the resource version of the list that no longer had the object.';
COMMENT ON COLUMN kuberewind.deltas_data.version IS 'API version in which the object was served.';
COMMENT ON COLUMN kuberewind.deltas_data.manager IS 'Field manager that wrote the version, if its managedFields prove it; else NULL, as on every Deleted and Sync. A watch does not carry the user.';
COMMENT ON COLUMN kuberewind.deltas_data.manager_evidence IS 'Proof of the manager: 1 entry, 2 owner, 3 none: there is no proof, and manager is NULL.';
COMMENT ON COLUMN kuberewind.deltas_data.manager_hint IS 'Field manager that owned the removed fields; it need not have removed them. NULL if there is none.';
COMMENT ON COLUMN kuberewind.deltas_data.subresource IS 'Subresource of that entry, such as status; NULL for none.';
COMMENT ON COLUMN kuberewind.deltas_data.digest IS 'First 16 bytes of SHA-256 of the canonical JSON text of this version; for an inferred delete, of the last known version.';
COMMENT ON COLUMN kuberewind.deltas_data.patch IS 'RFC 6902 patch, with the member "old" on replace and remove, against the previous version with this row''s resource version in its metadata. NULL on first versions, on inferred deletes, and if only the whole object could be stored.';
COMMENT ON COLUMN kuberewind.deltas_data.object IS 'The whole object, on keyframes. Always text that jsonb accepts.';
COMMENT ON COLUMN kuberewind.deltas_data.exact IS 'The exact canonical text in UTF-8, if object had to be changed for jsonb; NULL if object is exact.';

CREATE TABLE kuberewind.batches (
    cluster      integer     NOT NULL,
    batch        bigint      NOT NULL,
    epoch        bigint      NOT NULL,
    first_seq    bigint      NOT NULL,
    last_seq     bigint      NOT NULL,
    observed_at  timestamptz NOT NULL,
    committed_at timestamptz NOT NULL,
    digest       bytea       NOT NULL
) PARTITION BY RANGE (observed_at);
CREATE INDEX batches_by_batch ON kuberewind.batches (cluster, batch);
CREATE INDEX batches_by_last_seq ON kuberewind.batches (cluster, last_seq);
COMMENT ON TABLE kuberewind.batches IS 'One row for each commit, chained by digest to the previous commit: evidence against tampering. One partition for each UTC day of observed_at.';
COMMENT ON COLUMN kuberewind.batches.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.batches.batch IS 'Number of the commit within its cluster, without holes.';
COMMENT ON COLUMN kuberewind.batches.epoch IS 'The writer, as in epochs.';
COMMENT ON COLUMN kuberewind.batches.first_seq IS 'seq of its first delta; last_seq + 1 if it has none.';
COMMENT ON COLUMN kuberewind.batches.last_seq IS 'seq of the last delta up to and including this commit.';
COMMENT ON COLUMN kuberewind.batches.observed_at IS 'observed_at of its last item.';
COMMENT ON COLUMN kuberewind.batches.committed_at IS 'When it was committed, by the recorder''s clock.';
COMMENT ON COLUMN kuberewind.batches.digest IS 'SHA-256 over the previous digest and the content of this commit. It can be computed again from the tables.';

CREATE TABLE kuberewind.days (
    cluster   integer     NOT NULL,
    day       date        NOT NULL,
    first_seq bigint      NOT NULL,
    last_seq  bigint      NOT NULL,
    first_at  timestamptz NOT NULL,
    last_at   timestamptz NOT NULL,
    PRIMARY KEY (cluster, day)
) WITH (fillfactor = 50);
CREATE INDEX days_by_seq ON kuberewind.days (cluster, first_seq); -- first_seq never changes, so updates stay on the page
COMMENT ON TABLE kuberewind.days IS 'Bounds of each day''s partition of deltas_data, by cluster: they turn a seq into a day without a look into every partition.';
COMMENT ON COLUMN kuberewind.days.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.days.day IS 'UTC day of observed_at.';
COMMENT ON COLUMN kuberewind.days.first_seq IS 'Its lowest seq.';
COMMENT ON COLUMN kuberewind.days.last_seq IS 'Its highest seq.';
COMMENT ON COLUMN kuberewind.days.first_at IS 'Its earliest observed_at.';
COMMENT ON COLUMN kuberewind.days.last_at IS 'Its latest observed_at.';

-- lz4, if the server was built with it, takes half the time of pglz for jsonb. New partitions copy the setting from
-- here.
DO $$
BEGIN
    IF 'lz4' = ANY (SELECT unnest(enumvals) FROM pg_catalog.pg_settings WHERE name = 'default_toast_compression') THEN
        ALTER TABLE kuberewind.deltas_data
            ALTER COLUMN patch SET COMPRESSION lz4, ALTER COLUMN object SET COMPRESSION lz4, ALTER COLUMN exact SET COMPRESSION lz4;
    END IF;
END $$;

-- Partitions are data, not schema: the recorder requests them ahead of need, and on demand.
-- - The function runs as its definer, because the recorder owns nothing.
-- - It uses LIKE and ATTACH, because CREATE TABLE ... PARTITION OF would block every writer while it runs.
-- - ATTACH needs no CHECK constraint to avoid a scan, because the table is empty.
-- - The lock on the parent lets writers continue, and makes a second caller wait for the first. So call it in a transaction of its own.
-- - A detached day is attached again, if only the owner of the record can have made it. A trigger or rule in it would run as the
--   recorder.
CREATE FUNCTION kuberewind.ensure_day(day date) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET datestyle = 'ISO, YMD'
AS $$
DECLARE
    parent regclass;
    part   text;
    alien  text;
    made   boolean := false;
BEGIN
    IF day IS NULL OR NOT isfinite(day) OR day < '0001-01-01' OR day > '9999-12-31' THEN
        RAISE EXCEPTION 'ensure_day needs a day of the years 1 to 9999, not %', coalesce(day::text, 'NULL')
            USING ERRCODE = 'datetime_field_overflow';
    END IF;
    FOREACH parent IN ARRAY ARRAY['kuberewind.deltas_data', 'kuberewind.batches']::regclass[] LOOP
        part := format('kuberewind.%s_p%s', CASE parent WHEN 'kuberewind.batches'::regclass THEN 'batches' ELSE 'deltas' END, to_char(day, 'YYYYMMDD'));
        CONTINUE WHEN EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass(part) AND inhparent = parent);
        EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);
        CONTINUE WHEN EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass(part) AND inhparent = parent);
        IF to_regclass(part) IS NULL THEN
            EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING ALL)', part, parent);
            EXECUTE format('COMMENT ON TABLE %s IS %L', part, format('Partition of %s for %s (UTC).', parent, day));
        END IF;
        SELECT CASE
            WHEN c.relowner <> p.relowner THEN format('belongs to %s', c.relowner::regrole)
            WHEN EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid) THEN 'has a trigger'
            WHEN EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid) THEN 'has a rule'
        END INTO alien
        FROM pg_class c, pg_class p WHERE c.oid = to_regclass(part) AND p.oid = parent;
        IF alien IS NOT NULL THEN
            RAISE EXCEPTION 'the table % is in the way of a partition of that name: it %', part, alien
                USING ERRCODE = 'object_not_in_prerequisite_state', HINT = format('Look who made it, and rename or drop it; then %s is made anew.', part);
        END IF;
        EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)',
            parent, part, day::timestamptz, (day + 1)::timestamptz);
        made := true;
    END LOOP;
    RETURN made;
END $$;
COMMENT ON FUNCTION kuberewind.ensure_day(date) IS 'Makes the partitions of deltas_data and batches for a UTC day, if they are missing; returns true if it made one. Does not block writers.';
REVOKE ALL ON FUNCTION kuberewind.ensure_day(date) FROM PUBLIC;

-- One statement for each life, so that the whole key finds each. With a join the planner could read all living objects,
-- because the statistics of a table whose rows come and go are a minute old. Up to twenty lives in a batch, no other
-- way is faster. With hundreds, each life takes 5 µs.
CREATE FUNCTION kuberewind.end_living(of_cluster integer, streams integer[], object_ids bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    FOR i IN 1 .. cardinality(object_ids) LOOP
        DELETE FROM kuberewind.living l WHERE l.cluster = of_cluster AND l.stream = streams[i] AND l.object_id = object_ids[i];
    END LOOP;
END $$;
COMMENT ON FUNCTION kuberewind.end_living(integer, integer[], bigint[]) IS 'For the recorder: removes lives that have ended from living, by stream and number.';
REVOKE ALL ON FUNCTION kuberewind.end_living(integer, integer[], bigint[]) FROM PUBLIC;

DO $$
BEGIN
    IF to_regclass('kuberewind.schema_migrations') IS NOT NULL THEN
        COMMENT ON TABLE kuberewind.schema_migrations IS 'golang-migrate''s table. schema_version() returns the last migration that was applied.';
        COMMENT ON COLUMN kuberewind.schema_migrations.version IS 'Migration that is running, or ran last.';
        COMMENT ON COLUMN kuberewind.schema_migrations.dirty IS 'True while it runs, and after it was interrupted.';
    END IF;
END $$;

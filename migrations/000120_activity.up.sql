-- Activity: counts of deltas, made ahead for the wide windows of the timeline. They are derived from the deltas.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 120;

-- A row holds counts of up to some thousand deltas, in arrays: a row for each count would take ten times as many bytes.
-- All arrays of a row have one length, and their n-th elements belong together. The row of width delta counts nothing:
-- its bytes hold each delta, for bars shorter than a minute.
--
-- The counts of a day are deleted with it, because pruning deletes its rows of days. The recorder updates those rows,
-- but never their keys: so this foreign key does not block it.
CREATE TABLE kuberewind.activity (
    cluster    integer       NOT NULL,
    day        date          NOT NULL,
    first_seq  bigint        NOT NULL,
    last_seq   bigint        NOT NULL,
    width      text          NOT NULL,
    classifier integer       NOT NULL,
    times      timestamptz[] NOT NULL,
    streams    integer[]     NOT NULL,
    namespaces text[]        NOT NULL,
    managers   text[]        NOT NULL,
    classes    text[]        NOT NULL,
    counts     integer[]     NOT NULL,
    first_seqs bigint[]      NOT NULL,
    last_seqs  bigint[]      NOT NULL,
    deltas     bytea         NOT NULL DEFAULT '',
    PRIMARY KEY (cluster, day, first_seq, width),
    FOREIGN KEY (cluster, day) REFERENCES kuberewind.days (cluster, day) ON DELETE CASCADE
);
COMMENT ON TABLE kuberewind.activity IS 'Counts of deltas by the minute and by the hour of occurred_at, and each delta: five rows for each range of seqs. Derived from the deltas: without it, answers are the same, only slower. DELETE drops it, and the recorder counts again.';
COMMENT ON COLUMN kuberewind.activity.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.activity.day IS 'UTC day of observed_at of its deltas, as in days.';
COMMENT ON COLUMN kuberewind.activity.first_seq IS 'First seq that was counted.';
COMMENT ON COLUMN kuberewind.activity.last_seq IS 'Last seq that was counted; all seqs in between were counted.';
COMMENT ON COLUMN kuberewind.activity.width IS 'minute or hour: the length of the periods. With "of resource", namespaces and managers are counted together. delta: each delta by itself.';
COMMENT ON COLUMN kuberewind.activity.classifier IS 'Version of the classifier. Counts of another version are not used, and are made again.';
COMMENT ON COLUMN kuberewind.activity.times IS 'Beginning of the minute or hour, for each count.';
COMMENT ON COLUMN kuberewind.activity.streams IS 'The stream, as in streams.';
COMMENT ON COLUMN kuberewind.activity.namespaces IS 'Namespace, '''' for cluster-scoped objects.';
COMMENT ON COLUMN kuberewind.activity.managers IS 'Field manager that is proved, '''' for none.';
COMMENT ON COLUMN kuberewind.activity.classes IS 'Class, as docs/timeline.md explains it.';
COMMENT ON COLUMN kuberewind.activity.counts IS 'How many deltas.';
COMMENT ON COLUMN kuberewind.activity.first_seqs IS 'Lowest seq of them.';
COMMENT ON COLUMN kuberewind.activity.last_seqs IS 'Highest seq of them.';
COMMENT ON COLUMN kuberewind.activity.deltas IS 'Of the width delta: for each seq two varints, the place of its stream, namespace, manager and class in the arrays, and the milliseconds of occurred_at since the previous delta, or since 1970 for the first.';

DO $$
BEGIN
    IF 'lz4' = ANY (SELECT unnest(enumvals) FROM pg_catalog.pg_settings WHERE name = 'default_toast_compression') THEN
        ALTER TABLE kuberewind.activity
            ALTER COLUMN times SET COMPRESSION lz4, ALTER COLUMN streams SET COMPRESSION lz4, ALTER COLUMN namespaces SET COMPRESSION lz4,
            ALTER COLUMN managers SET COMPRESSION lz4, ALTER COLUMN classes SET COMPRESSION lz4, ALTER COLUMN counts SET COMPRESSION lz4,
            ALTER COLUMN first_seqs SET COMPRESSION lz4, ALTER COLUMN last_seqs SET COMPRESSION lz4, ALTER COLUMN deltas SET COMPRESSION lz4;
    END IF;
END $$;

CREATE VIEW kuberewind.record_activity AS
SELECT cluster, day, first_seq, last_seq, width, classifier, times, streams, namespaces, managers, classes, counts, first_seqs, last_seqs, deltas
FROM kuberewind.activity;
DO $$
DECLARE
    col record;
BEGIN
    COMMENT ON VIEW kuberewind.record_activity IS 'For programs, and not a contract: the table activity as it is.';
    FOR col IN
        SELECT t.attname, col_description(t.attrelid, t.attnum) AS meaning
        FROM pg_catalog.pg_attribute t WHERE t.attrelid = 'kuberewind.activity'::regclass AND t.attnum > 0
    LOOP
        EXECUTE format('COMMENT ON COLUMN kuberewind.record_activity.%I IS %L', col.attname, col.meaning);
    END LOOP;
END $$;

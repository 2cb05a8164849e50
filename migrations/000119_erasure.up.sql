-- Erasure: the owner removes a value that should not have been recorded from all rows. The chain of batches records the
-- removal.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 119;

CREATE TABLE kuberewind.erasures_data (
    cluster     integer     NOT NULL,
    erasure     bigint      NOT NULL,
    batch       bigint      NOT NULL,
    erased_at   timestamptz NOT NULL,
    erased_by   text        NOT NULL,
    reason      text        NOT NULL,
    scope       text        NOT NULL,
    fingerprint bytea       NOT NULL,
    deltas      bigint      NOT NULL,
    objects     bigint      NOT NULL,
    documents   bigint      NOT NULL,
    PRIMARY KEY (cluster, erasure)
);
COMMENT ON TABLE kuberewind.erasures_data IS 'Values that were erased from the record: the view erasures shows them with the names of their clusters.';
COMMENT ON COLUMN kuberewind.erasures_data.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.erasures_data.erasure IS 'Number of the erasure within its cluster. "[erased N]" stands in place of the value.';
COMMENT ON COLUMN kuberewind.erasures_data.batch IS 'The commit that holds it: a batch without deltas, whose digest covers it and what it changed.';
COMMENT ON COLUMN kuberewind.erasures_data.erased_at IS 'When, by the database''s clock.';
COMMENT ON COLUMN kuberewind.erasures_data.erased_by IS 'The login that did it.';
COMMENT ON COLUMN kuberewind.erasures_data.reason IS 'The reason given to recorder erase.';
COMMENT ON COLUMN kuberewind.erasures_data.scope IS 'Where it was searched: object and paths, '''' for everywhere.';
COMMENT ON COLUMN kuberewind.erasures_data.fingerprint IS 'Keyed hash of the value, made with the redaction key: with both, one can prove that this value was erased. The value itself is stored nowhere.';
COMMENT ON COLUMN kuberewind.erasures_data.deltas IS 'How many deltas were changed.';
COMMENT ON COLUMN kuberewind.erasures_data.objects IS 'How many objects they belong to.';
COMMENT ON COLUMN kuberewind.erasures_data.documents IS 'How many documents of the server were changed.';

CREATE TABLE kuberewind.erased_deltas (
    cluster       integer NOT NULL,
    seq           bigint  NOT NULL,
    batch         bigint  NOT NULL,
    digest_before bytea   NOT NULL,
    digest_after  bytea   NOT NULL,
    PRIMARY KEY (cluster, seq, batch)
);
CREATE INDEX erased_deltas_by_batch ON kuberewind.erased_deltas (cluster, batch, seq);
COMMENT ON TABLE kuberewind.erased_deltas IS 'Which deltas an erasure changed: their digests in their batch, and their digests now.';
COMMENT ON COLUMN kuberewind.erased_deltas.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.erased_deltas.seq IS 'Number of the delta.';
COMMENT ON COLUMN kuberewind.erased_deltas.batch IS 'The commit of the erasure.';
COMMENT ON COLUMN kuberewind.erased_deltas.digest_before IS 'Its digest before. The same as after if only the patch had the value.';
COMMENT ON COLUMN kuberewind.erased_deltas.digest_after IS 'Its digest after.';

CREATE VIEW kuberewind.erasures AS
SELECT c.name AS cluster, e.erasure, e.erased_at, e.erased_by, e.reason, e.scope, e.fingerprint, e.deltas, e.objects, e.documents, e.batch
FROM kuberewind.erasures_data e
JOIN kuberewind.clusters c ON c.cluster = e.cluster;
COMMENT ON VIEW kuberewind.erasures IS 'Values that were erased from the record, by whom and why.';
COMMENT ON COLUMN kuberewind.erasures.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.erasures.erasure IS 'Number of the erasure within its cluster. "[erased N]" stands in place of the value.';
COMMENT ON COLUMN kuberewind.erasures.erased_at IS 'When.';
COMMENT ON COLUMN kuberewind.erasures.erased_by IS 'The login that did it.';
COMMENT ON COLUMN kuberewind.erasures.reason IS 'The reason given to recorder erase.';
COMMENT ON COLUMN kuberewind.erasures.scope IS 'Where it was searched: object and paths, '''' for everywhere.';
COMMENT ON COLUMN kuberewind.erasures.fingerprint IS 'Keyed hash of the value, made with the redaction key.';
COMMENT ON COLUMN kuberewind.erasures.deltas IS 'How many deltas were changed.';
COMMENT ON COLUMN kuberewind.erasures.objects IS 'How many objects they belong to.';
COMMENT ON COLUMN kuberewind.erasures.documents IS 'How many documents of the server were changed.';
COMMENT ON COLUMN kuberewind.erasures.batch IS 'The commit that holds it.';

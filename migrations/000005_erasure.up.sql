-- Erasure: a value that must not have been recorded goes from all rows, and that it went is on record, in the chain of batches.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 5;

COMMENT ON SCHEMA kuberewind IS 'Every change of every object of the recorded Kubernetes clusters. Read the views deltas, changes, objects, gaps, pauses, clock_steps, prunes, erasures, coverage and server, and call the functions object_at, snapshot_at and history; \d+ and \df+ explain them.';

-- What the server makes of a stored object can change though the object does not: a default of its definition, a conversion, another release of the server.
ALTER TABLE kuberewind.streams ADD COLUMN schema text NOT NULL DEFAULT '';
COMMENT ON COLUMN kuberewind.streams.schema IS 'Under which schema its objects were last compared with what the server serves: API version, digest of the definition, release of the server. '''' where that is not known. When it changes, they are compared again (source schema).';

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
COMMENT ON COLUMN kuberewind.erasures_data.erasure IS 'Number of the erasure within its cluster. "[erased N]" stands where the value was.';
COMMENT ON COLUMN kuberewind.erasures_data.batch IS 'The commit that holds it: a batch without deltas, whose digest covers it and what it changed.';
COMMENT ON COLUMN kuberewind.erasures_data.erased_at IS 'When, by the database''s clock.';
COMMENT ON COLUMN kuberewind.erasures_data.erased_by IS 'The login that did it.';
COMMENT ON COLUMN kuberewind.erasures_data.reason IS 'Why, as it was said to recorder erase.';
COMMENT ON COLUMN kuberewind.erasures_data.scope IS 'Where it was looked for: object and paths, '''' for everywhere.';
COMMENT ON COLUMN kuberewind.erasures_data.fingerprint IS 'Keyed hash of the value, made with the redaction key: who has both can tell that it was this one. The value itself is nowhere.';
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
COMMENT ON TABLE kuberewind.erased_deltas IS 'Which deltas an erasure changed: what their batch was digested with, and what they are now.';
COMMENT ON COLUMN kuberewind.erased_deltas.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.erased_deltas.seq IS 'Number of the delta.';
COMMENT ON COLUMN kuberewind.erased_deltas.batch IS 'The commit of the erasure.';
COMMENT ON COLUMN kuberewind.erased_deltas.digest_before IS 'Its digest before. The same as after where only the patch spoke of the value.';
COMMENT ON COLUMN kuberewind.erased_deltas.digest_after IS 'Its digest after.';

-- Clocks that step.
CREATE TABLE kuberewind.clock_steps_data (
    cluster     integer     NOT NULL,
    epoch       bigint      NOT NULL,
    step        bigint      NOT NULL,
    after_seq   bigint      NOT NULL,
    record_at   timestamptz NOT NULL,
    recorder_at timestamptz NOT NULL,
    database_at timestamptz NOT NULL,
    adopted     boolean     NOT NULL,
    PRIMARY KEY (cluster, epoch, step)
);
COMMENT ON TABLE kuberewind.clock_steps_data IS 'Steps of the recorders'' clocks: the view clock_steps shows them with the names of their clusters.';
COMMENT ON COLUMN kuberewind.clock_steps_data.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.clock_steps_data.epoch IS 'The writer, as in epochs.';
COMMENT ON COLUMN kuberewind.clock_steps_data.step IS 'Number of the step within its epoch.';
COMMENT ON COLUMN kuberewind.clock_steps_data.after_seq IS 'Last seq that was committed then.';
COMMENT ON COLUMN kuberewind.clock_steps_data.record_at IS 'The record''s time before it. observed_at does not go back below that.';
COMMENT ON COLUMN kuberewind.clock_steps_data.recorder_at IS 'What the clock of the recorder''s host showed.';
COMMENT ON COLUMN kuberewind.clock_steps_data.database_at IS 'What the database''s clock showed.';
COMMENT ON COLUMN kuberewind.clock_steps_data.adopted IS 'Whether the record goes on by the clock of the recorder''s host: the database''s agreed. Otherwise it goes on from record_at, with what passes.';

CREATE VIEW kuberewind.clock_steps AS
SELECT c.name AS cluster, t.epoch, e.recorder, t.step, t.after_seq, t.record_at, t.recorder_at, t.database_at, t.adopted
FROM kuberewind.clock_steps_data t
JOIN kuberewind.clusters c ON c.cluster = t.cluster
LEFT JOIN kuberewind.epochs e ON e.cluster = t.cluster AND e.epoch = t.epoch;
COMMENT ON VIEW kuberewind.clock_steps IS 'Where a recorder''s clock stepped by more than a minute, or did not agree with the database''s: what observed_at is worth there.';
COMMENT ON COLUMN kuberewind.clock_steps.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.clock_steps.epoch IS 'The writer, as in pauses.';
COMMENT ON COLUMN kuberewind.clock_steps.recorder IS 'Name of the process that wrote (host and process).';
COMMENT ON COLUMN kuberewind.clock_steps.step IS 'Number of the step within its epoch.';
COMMENT ON COLUMN kuberewind.clock_steps.after_seq IS 'Last seq that was committed then.';
COMMENT ON COLUMN kuberewind.clock_steps.record_at IS 'The record''s time before it. observed_at does not go back below that.';
COMMENT ON COLUMN kuberewind.clock_steps.recorder_at IS 'What the clock of the recorder''s host showed.';
COMMENT ON COLUMN kuberewind.clock_steps.database_at IS 'What the database''s clock showed.';
COMMENT ON COLUMN kuberewind.clock_steps.adopted IS 'Whether the record goes on by the clock of the recorder''s host: the database''s agreed. Otherwise it goes on from record_at, with what passes.';

CREATE VIEW kuberewind.erasures AS
SELECT c.name AS cluster, e.erasure, e.erased_at, e.erased_by, e.reason, e.scope, e.fingerprint, e.deltas, e.objects, e.documents, e.batch
FROM kuberewind.erasures_data e
JOIN kuberewind.clusters c ON c.cluster = e.cluster;
COMMENT ON VIEW kuberewind.erasures IS 'Values that were erased from the record, by whom and why.';
COMMENT ON COLUMN kuberewind.erasures.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.erasures.erasure IS 'Number of the erasure within its cluster. "[erased N]" stands where the value was.';
COMMENT ON COLUMN kuberewind.erasures.erased_at IS 'When.';
COMMENT ON COLUMN kuberewind.erasures.erased_by IS 'The login that did it.';
COMMENT ON COLUMN kuberewind.erasures.reason IS 'Why, as it was said to recorder erase.';
COMMENT ON COLUMN kuberewind.erasures.scope IS 'Where it was looked for: object and paths, '''' for everywhere.';
COMMENT ON COLUMN kuberewind.erasures.fingerprint IS 'Keyed hash of the value, made with the redaction key.';
COMMENT ON COLUMN kuberewind.erasures.deltas IS 'How many deltas were changed.';
COMMENT ON COLUMN kuberewind.erasures.objects IS 'How many objects they belong to.';
COMMENT ON COLUMN kuberewind.erasures.documents IS 'How many documents of the server were changed.';
COMMENT ON COLUMN kuberewind.erasures.batch IS 'The commit that holds it.';

-- The causes as they are by now; docs/operating.md says what they mean.
COMMENT ON COLUMN kuberewind.gaps_data.cause IS 'Why: first_list, expired, overflow, spool_corrupt, configuration, forbidden, unauthorized, not_found, unreachable, undecodable, history_reversed.';
COMMENT ON COLUMN kuberewind.record_gaps.cause IS 'Why: first_list, expired, overflow, spool_corrupt, configuration, forbidden, unauthorized, not_found, unreachable, undecodable, history_reversed.';
COMMENT ON COLUMN kuberewind.gaps.cause IS 'Why: first_list, expired, overflow, spool_corrupt, configuration, forbidden, unauthorized, not_found, unreachable, undecodable, history_reversed.';

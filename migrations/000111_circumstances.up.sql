-- Facts that are no deltas: when the recorder was blind, the steps of its clock, and the server's documents about
-- itself.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 111;

CREATE TABLE kuberewind.gaps_data (
    cluster      integer     NOT NULL,
    gap          bigint      NOT NULL,
    stream       integer     NOT NULL,
    cause        text        NOT NULL,
    detail       text        NOT NULL,
    from_rv      text,
    from_at      timestamptz,
    opened_batch bigint      NOT NULL,
    to_rv        text,
    to_at        timestamptz,
    closed_batch bigint,
    outcome      text,
    appeared     bigint,
    changed      bigint,
    vanished     bigint,
    unchanged    bigint,
    PRIMARY KEY (cluster, gap)
);
COMMENT ON TABLE kuberewind.gaps_data IS 'When versions may have been missed (I3). The recorder opens a row when it cannot observe a stream, and closes it once, when it can again.';
COMMENT ON COLUMN kuberewind.gaps_data.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.gaps_data.gap IS 'Number of the gap within its cluster.';
COMMENT ON COLUMN kuberewind.gaps_data.stream IS 'The stream of the gap.';
COMMENT ON COLUMN kuberewind.gaps_data.cause IS 'Why: first_list, expired, overflow, spool_corrupt, configuration, forbidden, unauthorized, not_found, unreachable, undecodable, history_reversed.';
COMMENT ON COLUMN kuberewind.gaps_data.detail IS 'What the server or the recorder says about it.';
COMMENT ON COLUMN kuberewind.gaps_data.from_rv IS 'Resource version up to which the stream was complete; NULL if it never was.';
COMMENT ON COLUMN kuberewind.gaps_data.from_at IS 'When it was last known to be complete; NULL if it never was.';
COMMENT ON COLUMN kuberewind.gaps_data.opened_batch IS 'The commit that opened it.';
COMMENT ON COLUMN kuberewind.gaps_data.to_rv IS 'Resource version from which the stream is complete again; NULL while open.';
COMMENT ON COLUMN kuberewind.gaps_data.to_at IS 'When it was complete again; NULL while open.';
COMMENT ON COLUMN kuberewind.gaps_data.closed_batch IS 'The commit that closed it; NULL while open.';
COMMENT ON COLUMN kuberewind.gaps_data.outcome IS 'How it ended: resumed if nothing was missed, relisted if a list replaced the missed versions, equal if that list had no changes; NULL while open.';
COMMENT ON COLUMN kuberewind.gaps_data.appeared IS 'Objects that the list had and the record did not.';
COMMENT ON COLUMN kuberewind.gaps_data.changed IS 'Objects that the list had in another version.';
COMMENT ON COLUMN kuberewind.gaps_data.vanished IS 'Objects that the list no longer had: their deletes are inferred.';
COMMENT ON COLUMN kuberewind.gaps_data.unchanged IS 'Objects that the list had in the recorded version.';

CREATE TABLE kuberewind.pauses_data (
    cluster    integer     NOT NULL,
    epoch      bigint      NOT NULL,
    from_at    timestamptz NOT NULL,
    to_at      timestamptz NOT NULL,
    after_seq  bigint      NOT NULL,
    PRIMARY KEY (cluster, epoch)
);
COMMENT ON TABLE kuberewind.pauses_data IS 'When no recorder ran. Changes that were caught up afterwards have estimated times.';
COMMENT ON COLUMN kuberewind.pauses_data.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.pauses_data.epoch IS 'The writer that ended the pause.';
COMMENT ON COLUMN kuberewind.pauses_data.from_at IS 'The last observation before it, recorded or spooled.';
COMMENT ON COLUMN kuberewind.pauses_data.to_at IS 'When the writer took over.';
COMMENT ON COLUMN kuberewind.pauses_data.after_seq IS 'Last seq before it.';

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
COMMENT ON COLUMN kuberewind.clock_steps_data.record_at IS 'The record''s time before it. observed_at does not go below it.';
COMMENT ON COLUMN kuberewind.clock_steps_data.recorder_at IS 'Time of the recorder''s host.';
COMMENT ON COLUMN kuberewind.clock_steps_data.database_at IS 'Time of the database.';
COMMENT ON COLUMN kuberewind.clock_steps_data.adopted IS 'Whether the record continues with the time of the recorder''s host, because the database''s agreed. Otherwise it continues from record_at, with the time that passes.';

CREATE TABLE kuberewind.documents (
    cluster integer NOT NULL,
    digest  bytea   NOT NULL,
    content json    NOT NULL,
    PRIMARY KEY (cluster, digest)
);
COMMENT ON TABLE kuberewind.documents IS 'The contents of server_data, each stored once.';
COMMENT ON COLUMN kuberewind.documents.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.documents.digest IS 'Digest of the content.';
COMMENT ON COLUMN kuberewind.documents.content IS 'The document, as served.';

CREATE TABLE kuberewind.server_data (
    cluster     integer     NOT NULL,
    path        text        NOT NULL,
    observed_at timestamptz NOT NULL,
    digest      bytea,
    PRIMARY KEY (cluster, path, observed_at)
);
COMMENT ON TABLE kuberewind.server_data IS 'The API server''s documents about itself: version, discovery, OpenAPI. One row for each change.';
COMMENT ON COLUMN kuberewind.server_data.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.server_data.path IS 'Path of the document on the API server, such as /version.';
COMMENT ON COLUMN kuberewind.server_data.observed_at IS 'When this content was first seen; it is valid until the next row of the path.';
COMMENT ON COLUMN kuberewind.server_data.digest IS 'The content, as in documents; NULL when the server stopped serving it.';

-- As in deltas_data.
DO $$
BEGIN
    IF 'lz4' = ANY (SELECT unnest(enumvals) FROM pg_catalog.pg_settings WHERE name = 'default_toast_compression') THEN
        ALTER TABLE kuberewind.documents ALTER COLUMN content SET COMPRESSION lz4;
    END IF;
END $$;

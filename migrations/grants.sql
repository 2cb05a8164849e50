-- What the two roles may do. Rights that are not listed here are taken away first, in the same transaction.
DO $$
DECLARE
    relation regclass;
BEGIN
    FOR relation IN
        SELECT DISTINCT held.oid
        FROM (
            SELECT oid, relacl AS acl FROM pg_catalog.pg_class WHERE relnamespace = 'kuberewind'::regnamespace
            UNION ALL
            SELECT c.oid, a.attacl FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = 'kuberewind'::regnamespace
        ) held
        CROSS JOIN LATERAL pg_catalog.aclexplode(held.acl) granted
        WHERE granted.grantee IN ('kuberewind_writer'::regrole, 'kuberewind_auditor'::regrole)
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM kuberewind_writer, kuberewind_auditor', relation);
    END LOOP;
END $$;

-- Who may make a table here could make the one that ensure_day() attaches as a partition, and own it.
REVOKE ALL ON SCHEMA kuberewind FROM kuberewind_writer, kuberewind_auditor;
REVOKE ALL ON FUNCTION kuberewind.schema_version(), kuberewind.ensure_day(date) FROM kuberewind_writer, kuberewind_auditor;
GRANT USAGE ON SCHEMA kuberewind TO kuberewind_writer, kuberewind_auditor;
GRANT EXECUTE ON FUNCTION kuberewind.schema_version() TO kuberewind_writer, kuberewind_auditor;
GRANT EXECUTE ON FUNCTION kuberewind.ensure_day(date) TO kuberewind_writer;

GRANT SELECT ON kuberewind.deltas, kuberewind.changes, kuberewind.objects, kuberewind.gaps, kuberewind.pauses, kuberewind.server
    TO kuberewind_writer, kuberewind_auditor;

-- I8: nothing on deltas_data and batches but to add rows; partitions are reached through their parents only.
GRANT SELECT, INSERT ON
    kuberewind.clusters, kuberewind.heads, kuberewind.epochs, kuberewind.streams, kuberewind.lives, kuberewind.exclusions,
    kuberewind.deltas_data, kuberewind.batches, kuberewind.days, kuberewind.gaps_data, kuberewind.pauses_data,
    kuberewind.documents, kuberewind.server_data
    TO kuberewind_writer;
GRANT UPDATE ON kuberewind.heads, kuberewind.streams, kuberewind.days TO kuberewind_writer;
GRANT UPDATE (name) ON kuberewind.clusters TO kuberewind_writer;
GRANT UPDATE (deleted_seq) ON kuberewind.lives TO kuberewind_writer;
GRANT UPDATE (detail, to_rv, to_at, closed_batch, outcome, appeared, changed, vanished, unchanged) ON kuberewind.gaps_data TO kuberewind_writer;
GRANT DELETE ON kuberewind.exclusions TO kuberewind_writer;

-- The index that 000008 has built takes the place of the one before. It is a step of its own, since for this nobody may read lives: where somebody does for longer than
-- a migration waits for a lock, the index is not built again. Before 000009 was made, 000008 did this too: a record of such a revision has nothing left to be done.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 9;

DO $$
BEGIN
    IF to_regclass('kuberewind.lives_by_uid_hash') IS NOT NULL THEN
        DROP INDEX kuberewind.lives_by_uid;
        ALTER INDEX kuberewind.lives_by_uid_hash RENAME TO lives_by_uid;
    END IF;
END $$;

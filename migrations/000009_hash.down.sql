ALTER INDEX kuberewind.lives_by_uid RENAME TO lives_by_uid_hash;
CREATE INDEX lives_by_uid ON kuberewind.lives (uid, cluster);
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 8;

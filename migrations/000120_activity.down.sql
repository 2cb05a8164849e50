DROP VIEW kuberewind.record_activity;
DROP TABLE kuberewind.activity;
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 119;

DROP VIEW kuberewind.erasures;
DROP TABLE kuberewind.erased_deltas, kuberewind.erasures_data;
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 118;

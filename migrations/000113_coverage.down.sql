DROP VIEW kuberewind.record_coverage;
DROP FUNCTION kuberewind.record_left_out(jsonb, text, text);
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 112;

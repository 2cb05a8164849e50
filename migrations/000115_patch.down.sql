DROP FUNCTION kuberewind.apply_patch(jsonb, jsonb), kuberewind.record_tokens(jsonb, text);
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 114;

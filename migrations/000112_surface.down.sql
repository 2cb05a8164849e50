DROP VIEW kuberewind.server, kuberewind.clock_steps, kuberewind.recorders, kuberewind.pauses, kuberewind.gaps, kuberewind.objects, kuberewind.changes, kuberewind.deltas;
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 111;

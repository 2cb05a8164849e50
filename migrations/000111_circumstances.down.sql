DROP TABLE
    kuberewind.gaps_data,
    kuberewind.pauses_data,
    kuberewind.clock_steps_data,
    kuberewind.documents,
    kuberewind.server_data;
CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 110;

#!/bin/sh
# Makes the login of the recorder, when PostgreSQL makes its database. It may write the record, and change none of it:
# "recorder migrate" runs as the owner, gives the role its rights, and ends.
set -eu
: "${WRITER_PASSWORD:?choose a password for the login of the recorder}"
# The password is no argument: those show in lists of processes.
psql --set ON_ERROR_STOP=1 --no-psqlrc --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
\getenv password WRITER_PASSWORD
CREATE ROLE kuberewind_writer NOLOGIN;
CREATE ROLE recorder LOGIN PASSWORD :'password' IN ROLE kuberewind_writer;
SQL

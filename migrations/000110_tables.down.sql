-- Removes the whole record; partitions are dropped with their parents. The schema stays, because it holds
-- golang-migrate's own table.
DROP FUNCTION kuberewind.ensure_day(date), kuberewind.end_living(integer, integer[], bigint[]);
DROP TABLE
    kuberewind.clusters,
    kuberewind.heads,
    kuberewind.epochs,
    kuberewind.leaders,
    kuberewind.standbys,
    kuberewind.streams,
    kuberewind.lives,
    kuberewind.ends,
    kuberewind.living,
    kuberewind.exclusions,
    kuberewind.deltas_data,
    kuberewind.batches,
    kuberewind.days;
DROP FUNCTION kuberewind.schema_version();

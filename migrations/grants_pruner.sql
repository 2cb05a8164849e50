-- The rights of the pruner. I8: it may only drop whole days, through functions that check first.
REVOKE ALL ON ALL TABLES IN SCHEMA kuberewind FROM kuberewind_pruner;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA kuberewind FROM kuberewind_pruner;
REVOKE ALL ON SCHEMA kuberewind FROM kuberewind_pruner;
GRANT USAGE ON SCHEMA kuberewind TO kuberewind_pruner;
GRANT EXECUTE ON FUNCTION kuberewind.schema_version(), kuberewind.prune_obstacle(date, boolean), kuberewind.prune_day(date, text), kuberewind.prune_rest()
    TO kuberewind_pruner;
GRANT SELECT ON kuberewind.prunes, kuberewind.record_partitions TO kuberewind_pruner;

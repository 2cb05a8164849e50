-- Instants: which deltas of which streams belong to a time, a seq or a resource version.
--
-- These functions and those of replay plan each query again: the planner then knows the bounds, and opens one partition
-- instead of all. They take the number of the cluster as an argument: a distributed engine can run them on the node
-- that has its rows.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 116;

CREATE FUNCTION kuberewind.record_cluster(cluster_name text) RETURNS integer
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    number integer;
    names  text;
BEGIN
    SELECT max(c.cluster), string_agg(c.name, ', ' ORDER BY c.name) INTO number, names FROM kuberewind.record_clusters c;
    IF coalesce(cluster_name, '') <> '' THEN
        SELECT max(c.cluster) INTO number FROM kuberewind.record_clusters c WHERE c.name = cluster_name;
    END IF;
    IF number IS NULL THEN
        RAISE EXCEPTION 'the record holds no cluster %', coalesce(quote_literal(nullif(cluster_name, '')), 'at all')
            USING ERRCODE = 'invalid_parameter_value', HINT = CASE WHEN names IS NOT NULL THEN format('It holds %s.', names) ELSE 'Nothing has been recorded yet.' END;
    ELSIF coalesce(cluster_name, '') = '' AND (SELECT count(*) FROM kuberewind.record_clusters) > 1 THEN
        RAISE EXCEPTION 'the record holds more than one cluster: name one'
            USING ERRCODE = 'invalid_parameter_value', HINT = format('It holds %s.', names);
    END IF;
    RETURN number;
END $$;
COMMENT ON FUNCTION kuberewind.record_cluster(text) IS 'For the functions of this schema, and not a contract: the number of a cluster; for '''' and NULL, of the only cluster.';

-- of_namespace is NULL if the query is not about one namespace.
CREATE FUNCTION kuberewind.record_streams_of(of_cluster integer, of_group text, of_resource text, of_namespace text, one_object boolean) RETURNS integer[]
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    groups text[];
    found  record;
    near   text;
    label  text := of_resource || coalesce('.' || nullif(of_group, ''), '');
BEGIN
    SELECT array_agg(DISTINCT s.api_group) INTO groups FROM kuberewind.record_streams s
    WHERE s.cluster = of_cluster AND s.resource = of_resource AND s.api_group = coalesce(of_group, s.api_group);
    IF groups IS NULL THEN
        SELECT string_agg(DISTINCT s.resource || coalesce(' of ' || nullif(s.api_group, ''), ' of the core group '''''), ', ') INTO near
        FROM kuberewind.record_streams s
        WHERE s.cluster = of_cluster
          AND (s.resource = lower(of_resource) OR lower(s.kind) = lower(of_resource) OR s.resource LIKE replace(replace(left(lower(of_resource), 4), '%', ''), '_', '') || '_%');
        RAISE EXCEPTION 'the record holds no resource %', quote_literal(label) || CASE of_group WHEN '' THEN ' of the core group' ELSE '' END
            USING ERRCODE = 'invalid_parameter_value',
                HINT = coalesce('Near: ' || near || '. ', '') || 'All of them: SELECT DISTINCT cluster, api_group, resource FROM kuberewind.coverage';
    ELSIF cardinality(groups) > 1 THEN
        RAISE EXCEPTION 'several groups have a resource %: name one', quote_literal(of_resource)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'They are ' || (SELECT string_agg(quote_literal(g), ', ') FROM unnest(groups) g) || '.';
    END IF;
    SELECT bool_or(s.namespaced) AS namespaced, array_agg(s.stream ORDER BY s.stream) FILTER (WHERE s.scope IN ('', coalesce(nullif(of_namespace, ''), s.scope))) AS streams
    INTO found
    FROM kuberewind.record_streams s
    WHERE s.cluster = of_cluster AND s.resource = of_resource AND s.api_group = groups[1];
    IF one_object AND found.namespaced AND coalesce(of_namespace, '') = '' THEN
        RAISE EXCEPTION '% live in namespaces: name one', of_resource USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT found.namespaced AND coalesce(of_namespace, '') <> '' THEN
        RAISE EXCEPTION '% do not live in namespaces', of_resource USING ERRCODE = 'invalid_parameter_value', HINT = 'Give '''' for the namespace.';
    ELSIF found.streams IS NULL THEN
        RAISE EXCEPTION '% of the namespace % are not recorded', of_resource, quote_literal(of_namespace) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN found.streams;
END $$;
COMMENT ON FUNCTION kuberewind.record_streams_of(integer, text, text, text, boolean) IS 'For the functions of this schema, and not a contract: the streams of a resource. An unknown resource is an error that names similar ones.';

CREATE FUNCTION kuberewind.record_instant(at text, OUT at_time timestamptz, OUT at_seq bigint, OUT at_rv text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    part text[];
    past interval := '0';
BEGIN
    IF at = 'now' THEN
        at_time := statement_timestamp();
    ELSIF at ~ '^seq:[0-9]{1,18}$' THEN
        at_seq := substr(at, 5)::bigint;
    ELSIF at ~ '^rv:[1-9][0-9]{0,37}$' THEN
        at_rv := substr(at, 4);
    ELSIF at ~ '^-(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d))+$' THEN
        FOR part IN SELECT regexp_matches(at, '([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d)', 'g') LOOP
            past := past + make_interval(secs => part[1]::double precision * CASE part[2]
                WHEN 'd' THEN 86400 WHEN 'h' THEN 3600 WHEN 'm' THEN 60 WHEN 's' THEN 1 WHEN 'ms' THEN 1e-3 WHEN 'ns' THEN 1e-9 ELSE 1e-6 END);
        END LOOP;
        at_time := statement_timestamp() - past;
    ELSIF at ~ '^[0-9]{4,}-' THEN
        -- Nanoseconds are cut off: rounded up, the instant would include later deltas.
        at_time := regexp_replace(at, '([.,][0-9]{6})[0-9]+', '\1')::timestamptz;
    ELSE
        RAISE EXCEPTION 'not an instant: %', coalesce(quote_literal(at), 'NULL')
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Give RFC 3339 such as 2026-03-01T12:00:00Z, a duration before now such as -10m or -2d, seq:N, rv:N or now.';
    END IF;
END $$;
COMMENT ON FUNCTION kuberewind.record_instant(text) IS 'For the functions of this schema, and not a contract: reads an instant.';

-- seq and observed_at rise together, so the function searches a day by halves.
CREATE FUNCTION kuberewind.record_seq_at(of_cluster integer, at timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    day    record;
    probe  record;
    low    bigint; -- observed at or before the instant
    high   bigint; -- observed after it
    middle bigint;
BEGIN
    SELECT y.* INTO day FROM kuberewind.record_days y WHERE y.cluster = of_cluster AND y.first_at <= at ORDER BY y.day DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN 0;
    ELSIF day.last_at <= at THEN
        RETURN day.last_seq;
    END IF;
    low := day.first_seq;
    high := day.last_seq;
    WHILE high - low > 1 LOOP
        middle := (low + high) / 2;
        SELECT d.seq, d.observed_at INTO probe FROM kuberewind.record_deltas d
        WHERE d.cluster = of_cluster AND d.seq >= middle AND d.seq < high AND d.observed_at BETWEEN day.first_at AND day.last_at
        ORDER BY d.seq LIMIT 1;
        IF probe.observed_at <= at THEN
            low := probe.seq;
        ELSE
            high := middle;
        END IF;
    END LOOP;
    RETURN low;
END $$;
COMMENT ON FUNCTION kuberewind.record_seq_at(integer, timestamptz) IS 'For the functions of this schema, and not a contract: the last seq that was observed at or before an instant, 0 if there is none.';

-- For each stream the function returns which deltas belong to an instant:
-- - those up to seq_max;
-- - those up to caught_up whose occurred_at is not after at_time;
-- - if the instant is a resource version, none beyond at_rv. Up to old_seq only the last version of an object counts, because a
--   rollback of the server's history followed.
-- It warns if the answer may differ from what was true.
CREATE FUNCTION kuberewind.record_points_of(of_cluster integer, of_streams integer[], by_time timestamptz, by_seq bigint, by_rv text)
RETURNS TABLE (stream integer, seq_max bigint, caught_up bigint, at_time timestamptz, at_rv text, old_seq bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    head  record;
    first record;
    s     record;
    note  record;
    until timestamptz;
    pause timestamptz;
BEGIN
    SELECT h.* INTO head FROM kuberewind.record_heads h WHERE h.cluster = of_cluster;
    SELECT y.* INTO first FROM kuberewind.record_days y WHERE y.cluster = of_cluster ORDER BY y.day LIMIT 1;
    IF by_time = statement_timestamp() THEN
        by_time := greatest(by_time, head.observed_at); -- now is the end of the record, also where the recorder's clock is ahead
    END IF;
    IF first.first_seq IS NULL THEN
        RAISE EXCEPTION 'the record of the cluster holds no delta yet' USING ERRCODE = 'invalid_parameter_value';
    ELSIF by_time < first.first_at OR by_seq < first.first_seq THEN
        RAISE EXCEPTION '% is before the record, which begins at % with seq %', coalesce(by_time::text, 'seq ' || by_seq), first.first_at, first.first_seq
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF by_time IS NULL AND by_seq IS NULL AND by_rv IS NULL THEN
        RAISE EXCEPTION 'at is NULL: give an instant' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    at_rv := by_rv;
    caught_up := 0;
    old_seq := 0;
    IF by_seq IS NOT NULL THEN
        seq_max := by_seq;
        SELECT d.observed_at INTO at_time
        FROM (SELECT y.first_at, y.last_at FROM kuberewind.record_days y WHERE y.cluster = of_cluster AND y.first_seq <= by_seq ORDER BY y.day DESC LIMIT 1) y,
            LATERAL kuberewind.record_observed_at(of_cluster, least(by_seq, head.seq), y.first_at, y.last_at) d (observed_at);
        IF by_seq > head.seq THEN
            RAISE WARNING 'seq % lies after the record, which ends with seq % at %: this is the last that is known', by_seq, head.seq, head.observed_at;
        END IF;
    ELSIF by_rv IS NOT NULL THEN
        seq_max := head.seq;
    ELSE
        at_time := by_time;
        seq_max := kuberewind.record_seq_at(of_cluster, by_time);
        -- A recorder that is alive commits at least every minute or so.
        IF by_time > head.observed_at AND (by_time > statement_timestamp() OR head.observed_at < statement_timestamp() - interval '5 minutes') THEN
            RAISE WARNING '% lies after the record, which ends at %: this is the last that is known', by_time, head.observed_at;
        END IF;
        SELECT p.* INTO note FROM kuberewind.record_pauses p WHERE p.cluster = of_cluster AND p.from_at <= by_time AND p.to_at > by_time LIMIT 1;
        IF FOUND THEN
            RAISE WARNING 'estimated: no recorder ran from % to %, and times of what was caught up on are estimates', note.from_at, note.to_at;
            pause := note.to_at;
        END IF;
    END IF;
    FOR s IN
        SELECT x.*, x.resource || coalesce('.' || nullif(x.api_group, ''), '') || coalesce(' of namespace ' || nullif(x.scope, ''), '') AS label
        FROM kuberewind.record_streams x WHERE x.cluster = of_cluster AND x.stream = ANY (of_streams) ORDER BY x.stream
    LOOP
        stream := s.stream;
        until := pause;
        caught_up := 0;
        old_seq := 0;
        IF at_time < s.started_at THEN
            RAISE WARNING '% was not yet recorded: its recording began at %', s.label, s.started_at;
        END IF;
        FOR note IN
            SELECT g.* FROM kuberewind.record_gaps g
            WHERE g.cluster = of_cluster AND g.stream = s.stream
              AND (at_time IS NOT NULL AND (g.from_at IS NULL OR g.from_at <= at_time) AND (g.to_at IS NULL OR g.to_at > at_time)
                OR by_rv IS NOT NULL
                    AND (g.from_rv IS NULL OR (length(g.from_rv), g.from_rv COLLATE "C") < (length(by_rv), by_rv COLLATE "C"))
                    AND (g.to_rv IS NULL OR (length(g.to_rv), g.to_rv COLLATE "C") > (length(by_rv), by_rv COLLATE "C"))
                OR by_rv IS NOT NULL AND g.cause = 'history_reversed' AND g.to_at IS NOT NULL)
            ORDER BY g.gap
        LOOP
            IF by_rv IS NOT NULL AND note.cause = 'history_reversed' AND note.to_at IS NOT NULL THEN
                IF (length(by_rv), by_rv COLLATE "C") < (length(note.to_rv), note.to_rv COLLATE "C") THEN
                    RAISE EXCEPTION 'resource version % of % counts from the rollback of the server''s history at %, but the record is whole only from % on',
                        by_rv, s.label, note.to_at, note.to_rv
                        USING ERRCODE = 'invalid_parameter_value', HINT = 'Name the instant by its time or seq.';
                END IF;
                SELECT max(b.last_seq) INTO old_seq FROM kuberewind.record_batches b
                WHERE b.cluster = of_cluster AND b.batch = note.opened_batch - 1
                  AND b.observed_at <= coalesce(note.to_at, head.observed_at);
                old_seq := coalesce(old_seq, 0);
                RAISE WARNING 'the history of % went backwards at %: resource version % is taken for one since then', s.label, note.from_at, by_rv;
            ELSIF note.outcome = 'resumed' THEN
                CONTINUE WHEN by_time IS NULL; -- nothing was missed
                RAISE WARNING 'estimated: % was interrupted (%) from % to %, and times of what was caught up on are estimates', s.label, note.cause, note.from_at, note.to_at;
                until := greatest(until, note.to_at);
            ELSIF note.from_at IS NULL THEN
                RAISE WARNING '% was not yet recorded (%): it is complete from % on', s.label, note.cause, coalesce(note.to_at::text, 'a list that has not come yet');
            ELSE
                RAISE WARNING 'versions of % may be missing (%) from % to %', s.label, note.cause, note.from_at, coalesce(note.to_at::text, 'now');
            END IF;
        END LOOP;
        IF (length(s.position), s.position COLLATE "C") < (length(by_rv), by_rv COLLATE "C")
            AND (length(coalesce(s.last_rv, '')), coalesce(s.last_rv, '') COLLATE "C") < (length(by_rv), by_rv COLLATE "C") THEN
            RAISE WARNING 'resource version % lies after the record of %, which ends with %: this is the last that is known', by_rv, s.label, s.position;
        END IF;
        IF until IS NOT NULL THEN
            -- A recorder catches up soon after an interruption ends.
            caught_up := kuberewind.record_seq_at(of_cluster, until + interval '30 minutes');
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION kuberewind.record_points_of(integer, integer[], timestamptz, bigint, text) IS 'For record_points, and not a contract: the same, without the check for dropped days.';

CREATE FUNCTION kuberewind.record_observed_at(of_cluster integer, of_seq bigint, first_at timestamptz, last_at timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
BEGIN
    RETURN (SELECT d.observed_at FROM kuberewind.record_deltas d
        WHERE d.cluster = of_cluster AND d.seq = of_seq AND d.observed_at BETWEEN $3 AND $4 LIMIT 1);
END $$;
COMMENT ON FUNCTION kuberewind.record_observed_at(integer, bigint, timestamptz, timestamptz) IS 'For the functions of this schema, and not a contract: observed_at of a seq, within bounds.';

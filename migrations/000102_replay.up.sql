-- Reading: checkpoints, views for programs, and the functions that fold.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 102;

-- Checkpoints are derived from the deltas: they may be dropped at any time, and are made again. They need no foreign keys: a block
-- whose checkpoint is gone harms nobody.
CREATE TABLE kuberewind.checkpoints (
    cluster     integer     NOT NULL,
    checkpoint  bigint      NOT NULL,
    observed_at timestamptz NOT NULL,
    made_at     timestamptz NOT NULL,
    objects     integer     NOT NULL,
    blocks      integer     NOT NULL,
    bytes       bigint      NOT NULL,
    digest      bytea       NOT NULL,
    streams     jsonb       NOT NULL,
    PRIMARY KEY (cluster, checkpoint)
);
COMMENT ON TABLE kuberewind.checkpoints IS 'Compressed copies of all objects that were alive at a seq, from which a rebuild starts. Derived from the deltas: without any, answers are the same, only slower.';
COMMENT ON COLUMN kuberewind.checkpoints.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.checkpoints.checkpoint IS 'The seq: every delta up to and with it is in the checkpoint, and none after it.';
COMMENT ON COLUMN kuberewind.checkpoints.observed_at IS 'observed_at of the delta with that seq.';
COMMENT ON COLUMN kuberewind.checkpoints.made_at IS 'When it was written.';
COMMENT ON COLUMN kuberewind.checkpoints.objects IS 'How many objects it holds.';
COMMENT ON COLUMN kuberewind.checkpoints.blocks IS 'How many rows of checkpoint_blocks it has; with fewer it is not usable.';
COMMENT ON COLUMN kuberewind.checkpoints.bytes IS 'Size of its blocks.';
COMMENT ON COLUMN kuberewind.checkpoints.digest IS 'SHA-256 of the digests of its blocks in order.';
COMMENT ON COLUMN kuberewind.checkpoints.streams IS 'The newest resource version of each stream at that seq, by number of the stream.';

CREATE TABLE kuberewind.checkpoint_blocks (
    cluster    integer NOT NULL,
    checkpoint bigint  NOT NULL,
    block      integer NOT NULL,
    objects    integer NOT NULL,
    digest     bytea   NOT NULL,
    data       bytea   NOT NULL,
    PRIMARY KEY (cluster, checkpoint, block)
);
ALTER TABLE kuberewind.checkpoint_blocks ALTER COLUMN data SET STORAGE EXTERNAL; -- compressed already
COMMENT ON TABLE kuberewind.checkpoint_blocks IS 'The content of checkpoints, some hundred objects a row.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.cluster IS 'The cluster, as in clusters.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.checkpoint IS 'The checkpoint that it belongs to.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.block IS 'Number of the block within its checkpoint, from 0.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.objects IS 'How many objects it holds.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.digest IS 'SHA-256 of data.';
COMMENT ON COLUMN kuberewind.checkpoint_blocks.data IS 'The objects, compressed with zstd.';

-- The tables as they are, for programs that may read nothing but views. Each is one plain SELECT without conditions. The planner
-- takes it apart, prunes partitions and uses indexes, as for the table itself.
CREATE VIEW kuberewind.record_clusters AS
SELECT cluster, uid, name, registered_at FROM kuberewind.clusters;
CREATE VIEW kuberewind.record_heads AS
SELECT cluster, epoch, seq, batch, digest, observed_at FROM kuberewind.heads;
CREATE VIEW kuberewind.record_epochs AS
SELECT cluster, epoch, started_at, after_seq, recorder, version, config FROM kuberewind.epochs;
CREATE VIEW kuberewind.record_streams AS
SELECT cluster, stream, api_group, resource, scope, version, kind, namespaced, started_at, state, state_since, detail, filter,
    position, last_rv, last_seq, synced, bookmarks, positioned_at
FROM kuberewind.streams;
CREATE VIEW kuberewind.record_lives AS
SELECT l.cluster, l.object_id, l.stream, l.namespace, l.name, l.uid, e.seq AS deleted_seq, l.owners
FROM kuberewind.lives l
LEFT JOIN kuberewind.ends e ON e.cluster = l.cluster AND e.object_id = l.object_id;
CREATE VIEW kuberewind.record_ends AS
SELECT cluster, object_id, seq FROM kuberewind.ends;
CREATE VIEW kuberewind.record_living AS
SELECT cluster, stream, object_id FROM kuberewind.living;
CREATE VIEW kuberewind.record_exclusions AS
SELECT cluster, stream, uid, namespace, name, excluded_at FROM kuberewind.exclusions;
CREATE VIEW kuberewind.record_standbys AS
SELECT s.cluster_uid, s.recorder, s.seen_at
FROM kuberewind.standbys s
WHERE clock_timestamp() BETWEEN s.seen_at - 2 * s.term AND s.seen_at + 2 * s.term
    AND NOT EXISTS (SELECT FROM kuberewind.leaders l WHERE l.cluster_uid = s.cluster_uid AND l.holder = s.recorder AND l.renewed_at > s.seen_at);
CREATE VIEW kuberewind.record_deltas AS
SELECT cluster, stream, seq, object_id, observed_at, occurred_at, type, source, manager_evidence, rv, version, manager, manager_hint, subresource, digest, patch, object, exact
FROM kuberewind.deltas_data;
CREATE VIEW kuberewind.record_batches AS
SELECT cluster, batch, epoch, first_seq, last_seq, observed_at, committed_at, digest FROM kuberewind.batches;
CREATE VIEW kuberewind.record_days AS
SELECT cluster, day, first_seq, last_seq, first_at, last_at FROM kuberewind.days;
CREATE VIEW kuberewind.record_gaps AS
SELECT cluster, gap, stream, cause, detail, from_rv, from_at, opened_batch, to_rv, to_at, closed_batch, outcome, appeared, changed, vanished, unchanged
FROM kuberewind.gaps_data;
CREATE VIEW kuberewind.record_pauses AS
SELECT cluster, epoch, from_at, to_at, after_seq FROM kuberewind.pauses_data;
CREATE VIEW kuberewind.record_server AS
SELECT v.cluster, v.path, v.observed_at, v.digest, o.content
FROM kuberewind.server_data v
LEFT JOIN kuberewind.documents o ON o.cluster = v.cluster AND o.digest = v.digest;
CREATE VIEW kuberewind.record_checkpoints AS
SELECT cluster, checkpoint, observed_at, made_at, objects, blocks, bytes, digest, streams FROM kuberewind.checkpoints;
CREATE VIEW kuberewind.record_checkpoint_blocks AS
SELECT cluster, checkpoint, block, objects, digest, data FROM kuberewind.checkpoint_blocks;

-- Their columns mean what those of the tables mean.
DO $$
DECLARE
    pair text[];
    col  record;
BEGIN
    FOREACH pair SLICE 1 IN ARRAY ARRAY[
        ['clusters', 'clusters'], ['heads', 'heads'], ['epochs', 'epochs'], ['streams', 'streams'], ['lives', 'lives'], ['ends', 'ends'], ['living', 'living'], ['exclusions', 'exclusions'], ['standbys', 'standbys'],
        ['deltas', 'deltas_data'], ['batches', 'batches'], ['days', 'days'], ['gaps', 'gaps_data'], ['pauses', 'pauses_data'],
        ['server', 'server_data'], ['server', 'documents'], ['checkpoints', 'checkpoints'], ['checkpoint_blocks', 'checkpoint_blocks']]
    LOOP
        EXECUTE format('COMMENT ON VIEW kuberewind.record_%s IS %L', pair[1],
            format('For programs, and not a contract: the table %s as it is.', CASE pair[1] WHEN 'server' THEN 'server_data with its documents' ELSE pair[2] END));
        FOR col IN
            SELECT v.attname, col_description(t.attrelid, t.attnum) AS meaning
            FROM pg_catalog.pg_attribute v
            JOIN pg_catalog.pg_attribute t ON t.attname = v.attname AND t.attnum > 0
            WHERE v.attrelid = format('kuberewind.record_%s', pair[1])::regclass AND t.attrelid = format('kuberewind.%s', pair[2])::regclass AND v.attnum > 0
        LOOP
            EXECUTE format('COMMENT ON COLUMN kuberewind.record_%s.%I IS %L', pair[1], col.attname, col.meaning);
        END LOOP;
    END LOOP;
END $$;
COMMENT ON VIEW kuberewind.record_standbys IS 'For programs, and not a contract: those of the table standbys that said so lately, and do not lead.';
COMMENT ON VIEW kuberewind.record_lives IS 'For programs, and not a contract: the table lives, with ends.';
COMMENT ON COLUMN kuberewind.record_lives.deleted_seq IS 'seq of the delta that ended it, NULL while it lives.';

-- Functions run with the rights of their caller, over views only, and resolve names in pg_catalog alone. Functions that begin with record_
-- serve the others. They plan each query anew: the planner then knows the bounds, and opens one partition instead of all.
-- The functions that read rows take the number of the cluster as an argument: a distributed engine can run them where the rows of it are.

-- The tokens of a JSON pointer (RFC 6901) into doc, NULL if it is none. jsonb takes -1 and 01 for places in an array, and RFC 6901 does
-- not: they are let through only if they are keys.
CREATE FUNCTION kuberewind.record_tokens(doc jsonb, pointer text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    tokens text[];
BEGIN
    IF pointer = '' THEN
        RETURN '{}';
    ELSIF left(pointer, 1) <> '/' OR pointer ~ '~([^01]|$)' THEN
        RETURN NULL;
    END IF;
    tokens := CASE pointer WHEN '/' THEN ARRAY[''] ELSE string_to_array(substr(pointer, 2), '/') END;
    IF strpos(pointer, '~') > 0 THEN
        FOR i IN 1 .. cardinality(tokens) LOOP
            tokens[i] := replace(replace(tokens[i], '~1', '/'), '~0', '~');
        END LOOP;
    END IF;
    IF pointer ~ '/(\s|[-+][0-9]|0[0-9])' THEN
        FOR i IN 1 .. cardinality(tokens) LOOP
            IF tokens[i] ~ '^(\s|[-+][0-9]|0[0-9])' AND jsonb_typeof(doc #> tokens[1:i - 1]) = 'array' THEN
                RETURN NULL;
            END IF;
        END LOOP;
    END IF;
    RETURN tokens;
END $$;
COMMENT ON FUNCTION kuberewind.record_tokens(jsonb, text) IS 'For the functions of this schema, and not a contract: the tokens of a JSON pointer into a document, NULL if it is none.';

-- jsonb_set() appends a value that has no place in an array, and gives NULL for a NULL. So this function checks each value before.
CREATE FUNCTION kuberewind.apply_patch(doc jsonb, patch jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    step   jsonb;
    n      bigint;
    op     text;
    path   text[];
    origin text[];
    last   text;
    value  jsonb;
    parent jsonb;
    why    text;
BEGIN
    IF jsonb_typeof(patch) <> 'array' THEN
        RAISE EXCEPTION 'a patch is an array of operations, not %', jsonb_typeof(patch) USING ERRCODE = 'data_exception';
    END IF;
    FOR step, n IN SELECT e.value, e.ordinality FROM jsonb_array_elements(patch) WITH ORDINALITY e LOOP
        op := step ->> 'op';
        why := NULL;
        path := CASE jsonb_typeof(step -> 'path') WHEN 'string' THEN kuberewind.record_tokens(doc, step ->> 'path') END;
        IF path IS NULL THEN
            why := 'the path leads nowhere';
        ELSIF op IN ('add', 'replace', 'test') THEN
            value := step -> 'value';
            IF value IS NULL THEN
                why := '"value" is missing';
            END IF;
        ELSIF op IN ('move', 'copy') THEN
            origin := CASE jsonb_typeof(step -> 'from') WHEN 'string' THEN kuberewind.record_tokens(doc, step ->> 'from') END;
            value := doc #> origin;
            IF value IS NULL THEN
                why := '"from" leads nowhere';
            ELSIF op = 'move' AND cardinality(path) > cardinality(origin) AND path[1:cardinality(origin)] = origin THEN
                why := 'a value cannot be moved into itself';
            ELSIF op = 'move' AND path = origin THEN
                CONTINUE;
            ELSIF op = 'move' AND origin <> '{}' THEN
                doc := doc #- origin;
                path := kuberewind.record_tokens(doc, step ->> 'path');
            END IF;
            op := 'add';
        ELSIF op IS DISTINCT FROM 'remove' THEN
            why := '"op" must be add, remove, replace, move, copy or test';
        END IF;

        IF why IS NOT NULL THEN
            NULL;
        ELSIF op <> 'add' THEN
            parent := doc #> path; -- the value itself
            IF parent IS NULL THEN
                why := 'there is no such value';
            ELSIF op = 'test' AND parent <> value THEN
                why := 'the value is another';
            ELSIF op = 'remove' AND path = '{}' THEN
                why := 'the whole document cannot be removed';
            ELSIF op = 'remove' THEN
                doc := doc #- path;
            ELSIF op = 'replace' AND path = '{}' THEN
                doc := value;
            ELSIF op = 'replace' THEN
                doc := jsonb_set(doc, path, value, false);
            END IF;
        ELSIF path = '{}' THEN
            doc := value;
        ELSE
            last := path[cardinality(path)];
            path := path[1:cardinality(path) - 1];
            parent := doc #> path;
            IF jsonb_typeof(parent) = 'object' THEN
                doc := jsonb_set(doc, path || last, value, true);
            ELSIF jsonb_typeof(parent) IS DISTINCT FROM 'array' THEN
                why := 'there is nothing to add to';
            ELSIF last = '-' THEN
                doc := jsonb_insert(doc, path || jsonb_array_length(parent)::text, value);
            ELSIF last ~ '^(0|[1-9][0-9]{0,8})$' AND last::integer <= jsonb_array_length(parent) THEN
                doc := jsonb_insert(doc, path || last, value);
            ELSE
                why := format('the array has %s elements', jsonb_array_length(parent));
            END IF;
        END IF;
        IF why IS NOT NULL THEN
            RAISE EXCEPTION 'operation % of the patch does not apply: % %: %', n, coalesce(step ->> 'op', '(none)'), coalesce(step ->> 'path', '(no path)'), why
                USING ERRCODE = 'data_exception';
        END IF;
    END LOOP;
    RETURN doc;
END $$;
COMMENT ON FUNCTION kuberewind.apply_patch(jsonb, jsonb) IS 'The document with an RFC 6902 patch applied, as the column patch of deltas has it. Members that the RFC does not name, such as "old", are ignored. An operation that does not apply is an error that names it.';

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
COMMENT ON FUNCTION kuberewind.record_cluster(text) IS 'For the functions of this schema, and not a contract: the number of a cluster, of the only one for '''' and NULL.';

-- of_namespace: NULL where the question is not about one namespace.
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
COMMENT ON FUNCTION kuberewind.record_streams_of(integer, text, text, text, boolean) IS 'For the functions of this schema, and not a contract: the streams of a resource. An unknown resource is an error that names those near to it.';

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

-- seq and observed_at rise together, so a day is searched by halves.
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

-- For each stream it says which deltas belong to an instant:
-- - those up to seq_max;
-- - those up to caught_up whose occurred_at is not after at_time;
-- - if the instant is a resource version, none beyond at_rv. Up to old_seq only the last version of an object counts, because the
--   server's history went backwards there.
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
COMMENT ON FUNCTION kuberewind.record_points_of(integer, integer[], timestamptz, bigint, text) IS 'For record_points, and not a contract: the same, with no regard to what was dropped.';

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

-- It goes back from the newest day, and reads one partition of each. The first row of a life in a day is a keyframe (I8), so that day holds
-- all rows that the last version of the day needs. An object that was found is not looked for again.
CREATE FUNCTION kuberewind.record_fold(of_cluster integer, objects bigint[], seq_max bigint, caught_up bigint, at_time timestamptz, at_rv text, old_seq bigint)
RETURNS TABLE (object_id bigint, seq bigint, observed_at timestamptz, occurred_at timestamptz, version text, resource_version text, object jsonb)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
DECLARE
    pending bigint[] := ARRAY(SELECT o FROM unnest(objects) o ORDER BY o);
    found   bigint[];
    seq_end bigint := greatest(seq_max, caught_up);
    partitions text[] := ARRAY(SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'kuberewind.deltas_data'::regclass);
    day     record;
    r       record;
    doc     jsonb;
BEGIN
    FOR day IN SELECT y.* FROM kuberewind.record_days y WHERE y.cluster = of_cluster AND y.first_seq <= seq_end ORDER BY y.day DESC LOOP
        EXIT WHEN cardinality(pending) = 0 OR day.last_seq < pending[1];
        -- A day without its partition looks like a day without changes, and the answer would be an older version. A partition that
        -- is attached under another name is read.
        IF to_char(day.day, '"deltas_p"YYYYMMDD') <> ALL (partitions) THEN
            IF NOT EXISTS (SELECT FROM kuberewind.record_deltas x WHERE x.cluster = of_cluster AND x.observed_at BETWEEN day.first_at AND day.last_at) THEN
                RAISE EXCEPTION 'the deltas of % (seq % to %) are not on record: is the partition of its day gone?', day.day, day.first_seq, day.last_seq
                    USING ERRCODE = 'data_exception', HINT = 'Attach it again, or ask for an instant that does not need it.';
            END IF;
        END IF;
        -- For few objects, this look costs a fifth of the query that folds.
        IF cardinality(pending) < 10 THEN
            CONTINUE WHEN NOT EXISTS (
                SELECT FROM kuberewind.record_deltas x
                WHERE x.cluster = of_cluster AND x.object_id = ANY (pending) AND x.seq <= seq_end AND x.observed_at BETWEEN day.first_at AND day.last_at
                  AND (x.seq <= seq_max OR x.occurred_at <= at_time)
                  AND (at_rv IS NULL OR x.seq <= old_seq OR (length(x.rv), x.rv COLLATE "C") <= (length(at_rv), at_rv COLLATE "C")));
        END IF;
        found := '{}';
        FOR r IN
            SELECT d.*, newest.seq AS newest, newest.type AS last_type
            FROM unnest(pending) o (id)
            CROSS JOIN LATERAL (
                SELECT x.seq, x.type FROM kuberewind.record_deltas x
                WHERE x.cluster = of_cluster AND x.object_id = o.id AND x.seq <= seq_end AND x.observed_at BETWEEN day.first_at AND day.last_at
                  AND (x.seq <= seq_max OR x.occurred_at <= at_time)
                  AND (at_rv IS NULL OR x.seq <= old_seq OR (length(x.rv), x.rv COLLATE "C") <= (length(at_rv), at_rv COLLATE "C"))
                ORDER BY x.seq DESC LIMIT 1
            ) newest
            LEFT JOIN LATERAL (
                SELECT x.seq FROM kuberewind.record_deltas x
                WHERE newest.type <> 3 AND x.cluster = of_cluster AND x.object_id = o.id AND x.seq <= newest.seq AND x.object IS NOT NULL
                  AND x.observed_at BETWEEN day.first_at AND day.last_at
                ORDER BY x.seq DESC LIMIT 1
            ) keyframe ON true
            CROSS JOIN LATERAL (
                SELECT x.* FROM kuberewind.record_deltas x
                WHERE x.cluster = of_cluster AND x.object_id = o.id AND x.seq BETWEEN coalesce(keyframe.seq, newest.seq) AND newest.seq
                  AND x.observed_at BETWEEN day.first_at AND day.last_at
            ) d
            ORDER BY o.id, d.seq
        LOOP
            IF r.last_type <> 3 THEN
                doc := kuberewind.record_version(doc, r.seq, r.rv, r.patch, r.object);
            END IF;
            CONTINUE WHEN r.seq < r.newest;
            found := found || r.object_id;
            object := doc;
            doc := NULL;
            CONTINUE WHEN r.last_type = 3 OR (length(r.rv), r.rv COLLATE "C") > (length(at_rv), at_rv COLLATE "C");
            object_id := r.object_id;
            seq := r.seq;
            observed_at := r.observed_at;
            occurred_at := r.occurred_at;
            version := r.version;
            resource_version := r.rv;
            RETURN NEXT;
        END LOOP;
        IF cardinality(found) > 0 THEN
            pending := ARRAY(SELECT o FROM unnest(pending) o EXCEPT SELECT o FROM unnest(found) o ORDER BY 1);
        END IF;
    END LOOP;
    IF at_rv IS NULL AND pending[1] <= seq_max THEN
        RAISE EXCEPTION 'no delta of the life % is on record up to seq %: is the partition of its day gone?', pending[1], seq_max USING ERRCODE = 'data_exception';
    END IF;
END $$;
COMMENT ON FUNCTION kuberewind.record_fold(integer, bigint[], bigint, bigint, timestamptz, text, bigint) IS 'For the functions of this schema, and not a contract: of each of these lives the version at a point, if it was alive then.';

CREATE FUNCTION kuberewind.record_version(doc jsonb, of_seq bigint, rv text, patch jsonb, object json) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF object IS NOT NULL THEN
        RETURN object::jsonb;
    ELSIF patch IS NULL THEN
        RETURN doc; -- an inferred delete: the last that is known
    ELSIF doc IS NULL THEN
        RAISE EXCEPTION 'there is no keyframe before it' USING ERRCODE = 'data_exception';
    END IF;
    IF rv <> '' THEN
        doc := jsonb_set(doc, '{metadata,resourceVersion}', to_jsonb(rv), false);
    END IF;
    RETURN kuberewind.apply_patch(doc, patch);
EXCEPTION WHEN data_exception THEN
    RAISE EXCEPTION 'the delta with seq % cannot be folded: %', of_seq, SQLERRM
        USING ERRCODE = 'data_corrupted', HINT = 'replay verify says what is damaged; from the next row with an object on, it can be read again.';
END $$;
COMMENT ON FUNCTION kuberewind.record_version(jsonb, bigint, text, jsonb, json) IS 'For the functions of this schema, and not a contract: the version after a delta, from the one before it. What does not apply is an error that names the seq.';

CREATE FUNCTION kuberewind.record_object_at(of_cluster integer, of_group text, of_resource text, of_namespace text, of_name text,
    by_time timestamptz, by_seq bigint, by_rv text) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    streams integer[] := kuberewind.record_streams_of(of_cluster, of_group, of_resource, of_namespace, true);
    point   record;
    lives   bigint[];
    answer  jsonb;
BEGIN
    FOR point IN SELECT * FROM kuberewind.record_points(of_cluster, streams, by_time, by_seq, by_rv) LOOP
        SELECT array_agg(l.object_id) INTO lives FROM kuberewind.record_lives l
        WHERE l.name = of_name AND l.namespace = coalesce(of_namespace, '') AND l.cluster = of_cluster AND l.stream = point.stream
          AND l.object_id <= greatest(point.seq_max, point.caught_up)
          AND (by_rv IS NOT NULL OR l.deleted_seq IS NULL OR l.deleted_seq > point.seq_max)
          AND (point.caught_up <= point.seq_max OR NOT EXISTS ( -- another of its name has begun, so it has ended, although that may seem to be later
            SELECT FROM kuberewind.record_lives n
            JOIN kuberewind.record_deltas x ON x.cluster = n.cluster AND x.object_id = n.object_id
            WHERE n.cluster = of_cluster AND n.stream = l.stream AND n.namespace = l.namespace AND n.name = l.name
              AND n.object_id > greatest(l.object_id, point.seq_max) AND n.object_id <= point.caught_up
              AND x.seq <= point.caught_up AND x.occurred_at <= point.at_time AND x.observed_at > point.at_time));
        CONTINUE WHEN lives IS NULL;
        SELECT f.object INTO answer
        FROM kuberewind.record_fold(of_cluster, lives, point.seq_max, point.caught_up, point.at_time, point.at_rv, point.old_seq) f
        ORDER BY f.object_id DESC LIMIT 1;
        EXIT WHEN answer IS NOT NULL;
    END LOOP;
    RETURN answer;
END $$;
COMMENT ON FUNCTION kuberewind.record_object_at(integer, text, text, text, text, timestamptz, bigint, text) IS 'For the functions of this schema, and not a contract: object_at for any kind of instant.';

CREATE FUNCTION kuberewind.object_at(cluster text, "group" text, resource text, namespace text, name text, at timestamptz) RETURNS jsonb
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
RETURN kuberewind.record_object_at(kuberewind.record_cluster($1), $2, $3, $4, $5, $6, NULL, NULL);
COMMENT ON FUNCTION kuberewind.object_at(text, text, text, text, text, timestamptz) IS 'The object as it was at an instant, which is included; NULL if it did not exist. cluster may be '''' where the record holds one, "group" is '''' for the core group or NULL for whichever has the resource, namespace is '''' for what lives in none. An instant before the record is an error; a WARNING says when the answer is an estimate (a pause), may lack a version (a gap), or lies after the record.';

CREATE FUNCTION kuberewind.object_at(cluster text, "group" text, resource text, namespace text, name text, at text) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    i record;
BEGIN
    SELECT * INTO i FROM kuberewind.record_instant($6);
    RETURN kuberewind.record_object_at(kuberewind.record_cluster($1), $2, $3, $4, $5, i.at_time, i.at_seq, i.at_rv);
END $$;
COMMENT ON FUNCTION kuberewind.object_at(text, text, text, text, text, text) IS 'The same for an instant as text: RFC 3339, a duration before now such as -10m or -2d, seq:N, rv:N or now.';

-- A type, because the columns of a RETURNS TABLE could not have the names of the arguments.
CREATE TYPE kuberewind.snapshot AS (
    api_group text, version text, resource text, kind text, namespace text, name text, uid text, resource_version text, object jsonb,
    seq bigint, object_id bigint, observed_at timestamptz, occurred_at timestamptz
);
COMMENT ON TYPE kuberewind.snapshot IS 'A row of snapshot_at.';
COMMENT ON COLUMN kuberewind.snapshot.api_group IS 'API group, '''' for the core group.';
COMMENT ON COLUMN kuberewind.snapshot.version IS 'API version in which the object was served.';
COMMENT ON COLUMN kuberewind.snapshot.resource IS 'Resource: the plural name, as in URLs.';
COMMENT ON COLUMN kuberewind.snapshot.kind IS 'Kind.';
COMMENT ON COLUMN kuberewind.snapshot.namespace IS 'Namespace, '''' for cluster-scoped objects.';
COMMENT ON COLUMN kuberewind.snapshot.name IS 'Name, cut with a digest at its end if it has more than 1,024 bytes.';
COMMENT ON COLUMN kuberewind.snapshot.uid IS 'UID: identifies one life of the object.';
COMMENT ON COLUMN kuberewind.snapshot.resource_version IS 'Resource version.';
COMMENT ON COLUMN kuberewind.snapshot.object IS 'The whole object.';
COMMENT ON COLUMN kuberewind.snapshot.seq IS 'Number of its last delta at the instant.';
COMMENT ON COLUMN kuberewind.snapshot.object_id IS 'Number of the life within its cluster.';
COMMENT ON COLUMN kuberewind.snapshot.observed_at IS 'When the recorder saw that delta.';
COMMENT ON COLUMN kuberewind.snapshot.occurred_at IS 'Best evidence of when it happened, as in deltas.';

CREATE FUNCTION kuberewind.record_snapshot_at(of_cluster integer, of_group text, of_resource text, of_namespace text, by_time timestamptz, by_seq bigint, by_rv text)
RETURNS SETOF kuberewind.snapshot
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
DECLARE
    chosen integer[];
    point  record;
    lives  bigint[];
BEGIN
    IF of_resource IS NULL AND by_rv IS NOT NULL THEN
        RAISE EXCEPTION 'resource versions are compared within one resource: name one' USING ERRCODE = 'invalid_parameter_value';
    ELSIF of_resource IS NOT NULL THEN
        chosen := kuberewind.record_streams_of(of_cluster, of_group, of_resource, of_namespace, false);
    ELSE
        SELECT array_agg(s.stream) INTO chosen FROM kuberewind.record_streams s
        WHERE s.cluster = of_cluster AND s.api_group = coalesce(of_group, s.api_group) AND s.scope IN ('', coalesce(of_namespace, s.scope));
        IF chosen IS NULL THEN
            RAISE EXCEPTION 'the record holds nothing of the group %', quote_nullable(of_group) USING ERRCODE = 'invalid_parameter_value',
                HINT = 'All of them: SELECT DISTINCT cluster, api_group, resource FROM kuberewind.coverage';
        END IF;
    END IF;
    FOR point IN
        SELECT array_agg(p.stream) AS streams, p.seq_max, p.caught_up, p.at_time, p.at_rv, p.old_seq
        FROM kuberewind.record_points(of_cluster, chosen, by_time, by_seq, by_rv) p
        GROUP BY p.seq_max, p.caught_up, p.at_time, p.at_rv, p.old_seq
    LOOP
        lives := ARRAY(
            SELECT l.object_id FROM kuberewind.record_lives l
            WHERE l.cluster = of_cluster AND l.stream = ANY (point.streams) AND l.object_id <= greatest(point.seq_max, point.caught_up)
              AND (by_rv IS NOT NULL OR l.deleted_seq IS NULL OR l.deleted_seq > point.seq_max)
              AND (of_namespace IS NULL OR l.namespace = of_namespace)
              AND (point.caught_up <= point.seq_max OR NOT EXISTS ( -- another of its name has begun, so it has ended, although that may seem to be later
                SELECT FROM kuberewind.record_lives n
                JOIN kuberewind.record_deltas x ON x.cluster = n.cluster AND x.object_id = n.object_id
                WHERE n.cluster = of_cluster AND n.stream = l.stream AND n.namespace = l.namespace AND n.name = l.name
                  AND n.object_id > greatest(l.object_id, point.seq_max) AND n.object_id <= point.caught_up
                  AND x.seq <= point.caught_up AND x.occurred_at <= point.at_time AND x.observed_at > point.at_time)));
        RETURN QUERY
        SELECT s.api_group, f.version, s.resource, s.kind, l.namespace, l.name, l.uid, f.resource_version, f.object, f.seq, f.object_id, f.observed_at, f.occurred_at
        FROM kuberewind.record_fold(of_cluster, lives, point.seq_max, point.caught_up, point.at_time, point.at_rv, point.old_seq) f
        JOIN kuberewind.record_lives l ON l.cluster = of_cluster AND l.object_id = f.object_id
        JOIN kuberewind.record_streams s ON s.cluster = of_cluster AND s.stream = l.stream;
    END LOOP;
END $$;
COMMENT ON FUNCTION kuberewind.record_snapshot_at(integer, text, text, text, timestamptz, bigint, text) IS 'For the functions of this schema, and not a contract: snapshot_at for any kind of instant.';

CREATE FUNCTION kuberewind.snapshot_at(cluster text, at timestamptz, "group" text DEFAULT NULL, resource text DEFAULT NULL, namespace text DEFAULT NULL)
RETURNS SETOF kuberewind.snapshot
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT * FROM kuberewind.record_snapshot_at(kuberewind.record_cluster($1), $3, $4, $5, $2, NULL, NULL);
END;
COMMENT ON FUNCTION kuberewind.snapshot_at(text, timestamptz, text, text, text) IS 'All objects that were alive at an instant, which is included, or those of a group, resource or namespace (NULL for any). The slow way: PostgreSQL folds some thousand objects a second; replay takes a cluster of any size from a checkpoint. Notes come as with object_at.';

CREATE FUNCTION kuberewind.snapshot_at(cluster text, at text, "group" text DEFAULT NULL, resource text DEFAULT NULL, namespace text DEFAULT NULL)
RETURNS SETOF kuberewind.snapshot
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    i record;
BEGIN
    SELECT * INTO i FROM kuberewind.record_instant($2);
    RETURN QUERY SELECT * FROM kuberewind.record_snapshot_at(kuberewind.record_cluster($1), $3, $4, $5, i.at_time, i.at_seq, i.at_rv);
END $$;
COMMENT ON FUNCTION kuberewind.snapshot_at(text, text, text, text, text) IS 'The same for an instant as text, as in object_at; rv:N asks for a resource.';

-- Both bounds are included. Those by resource version count within the history of the name, whose versions rise.
CREATE FUNCTION kuberewind.record_history(of_cluster integer, of_group text, of_resource text, of_namespace text, of_name text,
    from_time timestamptz, from_seq bigint, from_rv text, to_time timestamptz, to_seq bigint, to_rv text)
RETURNS TABLE (seq bigint, observed_at timestamptz, occurred_at timestamptz, type text, source text, version text, resource_version text,
    manager text, manager_evidence text, manager_hint text, subresource text, uid text, patch jsonb, object jsonb, object_id bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
DECLARE
    streams integer[] := kuberewind.record_streams_of(of_cluster, of_group, of_resource, of_namespace, true);
    partitions text[] := ARRAY(SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'kuberewind.deltas_data'::regclass);
    life    record;
    day     record;
    d       record;
BEGIN
    FOR life IN
        SELECT l.object_id, l.uid, l.deleted_seq FROM kuberewind.record_lives l
        WHERE l.name = of_name AND l.namespace = coalesce(of_namespace, '') AND l.cluster = of_cluster AND l.stream = ANY (streams)
          AND (l.object_id <= to_seq OR to_seq IS NULL) AND (l.deleted_seq >= from_seq OR l.deleted_seq IS NULL OR from_seq IS NULL)
        ORDER BY l.object_id
    LOOP
        object_id := life.object_id;
        uid := life.uid;
        object := NULL;
        FOR day IN
            SELECT y.* FROM kuberewind.record_days y
            WHERE y.cluster = of_cluster AND y.last_seq >= life.object_id AND (y.first_seq <= life.deleted_seq OR life.deleted_seq IS NULL)
              AND (y.last_at >= from_time OR from_time IS NULL) AND (y.first_at <= to_time OR to_time IS NULL)
              AND (y.last_seq >= from_seq OR from_seq IS NULL) AND (y.first_seq <= to_seq OR to_seq IS NULL)
            ORDER BY y.day
        LOOP
            FOR d IN
                SELECT x.* FROM kuberewind.record_deltas x
                WHERE x.cluster = of_cluster AND x.object_id = life.object_id AND x.observed_at BETWEEN day.first_at AND day.last_at
                ORDER BY x.seq
            LOOP
                object := kuberewind.record_version(object, d.seq, d.rv, d.patch, d.object);
                CONTINUE WHEN d.observed_at < from_time OR d.seq < from_seq OR (length(d.rv), d.rv COLLATE "C") < (length(from_rv), from_rv COLLATE "C")
                    OR d.observed_at > to_time OR d.seq > to_seq OR (length(d.rv), d.rv COLLATE "C") > (length(to_rv), to_rv COLLATE "C");
                seq := d.seq;
                observed_at := d.observed_at;
                occurred_at := d.occurred_at;
                type := CASE d.type WHEN 1 THEN 'Added' WHEN 2 THEN 'Updated' WHEN 3 THEN 'Deleted' WHEN 4 THEN 'Sync' ELSE d.type::text END;
                source := CASE d.source WHEN 1 THEN 'watch' WHEN 2 THEN 'list' WHEN 3 THEN 'relist'
                    WHEN 4 THEN 'resync' WHEN 5 THEN 'schema' WHEN 6 THEN 'inferred' ELSE d.source::text END;
                version := d.version;
                resource_version := d.rv;
                manager := d.manager;
                manager_evidence := CASE d.manager_evidence WHEN 1 THEN 'entry' WHEN 2 THEN 'owner' WHEN 3 THEN 'none' ELSE d.manager_evidence::text END;
                manager_hint := d.manager_hint;
                subresource := d.subresource;
                patch := d.patch;
                RETURN NEXT;
            END LOOP;
            IF NOT FOUND AND to_char(day.day, '"deltas_p"YYYYMMDD') <> ALL (partitions) THEN
                IF NOT EXISTS (SELECT FROM kuberewind.record_deltas x WHERE x.cluster = of_cluster AND x.observed_at BETWEEN day.first_at AND day.last_at) THEN
                    RAISE WARNING 'the deltas of % (seq % to %) are not on record: is the partition of its day gone? Versions of that day are missing',
                        day.day, day.first_seq, day.last_seq;
                END IF;
            END IF;
        END LOOP;
    END LOOP;
END $$;
COMMENT ON FUNCTION kuberewind.record_history(integer, text, text, text, text, timestamptz, bigint, text, timestamptz, bigint, text) IS 'For the functions of this schema, and not a contract: history for any kind of bounds.';

CREATE FUNCTION kuberewind.history(cluster text, "group" text, resource text, namespace text, name text, "from" timestamptz DEFAULT NULL, "to" timestamptz DEFAULT NULL)
RETURNS TABLE (seq bigint, observed_at timestamptz, occurred_at timestamptz, type text, source text, version text, resource_version text,
    manager text, manager_evidence text, manager_hint text, subresource text, uid text, patch jsonb, object jsonb, object_id bigint)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT * FROM kuberewind.record_history(kuberewind.record_cluster($1), $2, $3, $4, $5, $6, NULL, NULL, $7, NULL, NULL);
END;
COMMENT ON FUNCTION kuberewind.history(text, text, text, text, text, timestamptz, timestamptz) IS 'Every version of an object in the order recorded, with the patch that made it and the whole object after it (of a delete: as it was deleted); all lives of the name, by uid. Bounds are included, on observed_at; NULL does not bound.';

CREATE FUNCTION kuberewind.history(cluster text, "group" text, resource text, namespace text, name text, "from" text, "to" text DEFAULT NULL)
RETURNS TABLE (seq bigint, observed_at timestamptz, occurred_at timestamptz, type text, source text, version text, resource_version text,
    manager text, manager_evidence text, manager_hint text, subresource text, uid text, patch jsonb, object jsonb, object_id bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a record;
    b record;
BEGIN
    -- now stands for no bound: clocks may differ.
    SELECT * INTO a FROM kuberewind.record_instant(coalesce($6, 'seq:0'));
    SELECT * INTO b FROM kuberewind.record_instant(coalesce(nullif($7, 'now'), 'seq:999999999999999999'));
    RETURN QUERY SELECT * FROM kuberewind.record_history(kuberewind.record_cluster($1), $2, $3, $4, $5, a.at_time, a.at_seq, a.at_rv, b.at_time, b.at_seq, b.at_rv);
END $$;
COMMENT ON FUNCTION kuberewind.history(text, text, text, text, text, text, text) IS 'The same with bounds as text, as in object_at.';

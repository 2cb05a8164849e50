-- The periods of each resource that the record covers, and those that it does not cover: the base of the view coverage.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 113;

CREATE FUNCTION kuberewind.record_left_out(config jsonb, api_group text, resource text, OUT whole boolean, OUT rules text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    -- A rule is resource[.group][/namespace][?labels], with * in its parts, as in the settings include and exclude.
    WITH listed AS (
        SELECT 'include' AS list, e.rule FROM jsonb_array_elements_text(CASE jsonb_typeof($1 -> 'include') WHEN 'array' THEN $1 -> 'include' ELSE '[]' END) e (rule)
        UNION ALL
        SELECT 'exclude', e.rule FROM jsonb_array_elements_text(CASE jsonb_typeof($1 -> 'exclude') WHEN 'array' THEN $1 -> 'exclude' ELSE '[]' END) e (rule)
    ), parts AS (
        SELECT list, rule, split_part(split_part(rule, '?', 1), '/', 1) AS target,
            split_part(rule, '?', 1) ~ '^[^/]*(/\*)?$' AND rule !~ '\?.*\S' AS whole
        FROM listed
    ), matching AS (
        SELECT list, rule, parts.whole
        FROM parts
        WHERE $3 ~ ('^(?:' || replace(regexp_replace(split_part(target, '.', 1), '([.+(){}|$])', '\\\1', 'g'), '*', '.*') || ')$')
          AND (strpos(target, '.') = 0
            OR $2 ~ ('^(?:' || replace(regexp_replace(substr(target, strpos(target, '.') + 1), '([.+(){}|$])', '\\\1', 'g'), '*', '.*') || ')$'))
    ), sums AS (
        SELECT (SELECT count(*) FROM listed WHERE list = 'include') AS includes,
            count(*) FILTER (WHERE list = 'include') AS included, bool_or(m.whole) FILTER (WHERE list = 'include') AS all_included,
            count(*) FILTER (WHERE list = 'exclude') AS excluded, bool_or(m.whole) FILTER (WHERE list = 'exclude') AS all_excluded,
            string_agg('include ' || rule, ', ') FILTER (WHERE list = 'include') AS include_rules,
            string_agg('exclude ' || rule, ', ') FILTER (WHERE list = 'exclude') AS exclude_rules
        FROM matching m
    )
    SELECT coalesce(all_excluded, false) OR includes > 0 AND included = 0,
        CASE
            WHEN coalesce(all_excluded, false) THEN exclude_rules
            WHEN includes > 0 AND included = 0 THEN 'no rule includes it'
            ELSE nullif(concat_ws(', ', CASE WHEN includes > 0 AND NOT coalesce(all_included, false) THEN include_rules END, exclude_rules), '')
        END
    FROM sums
$$;
COMMENT ON FUNCTION kuberewind.record_left_out(jsonb, text, text) IS 'For the views of this schema, and not a contract: whether a configuration excludes a whole resource, and the rules that exclude some of it; NULL if none does.';

-- The view coverage (000118) cuts this at the horizon of the dropped days.
CREATE VIEW kuberewind.record_coverage AS
WITH heads AS (
    SELECT c.cluster, c.name, h.observed_at, h.observed_at > statement_timestamp() - interval '5 minutes' AS live
    FROM kuberewind.clusters c
    JOIN kuberewind.heads h ON h.cluster = c.cluster
),
changed AS ( -- epochs whose rules differ from those of the previous epoch
    SELECT e.cluster, e.epoch, e.started_at, e.config,
        lag(e.config -> 'include') OVER w IS DISTINCT FROM e.config -> 'include'
            OR lag(e.config -> 'exclude') OVER w IS DISTINCT FROM e.config -> 'exclude' OR lag(e.epoch) OVER w IS NULL AS changed
    FROM kuberewind.epochs e
    WINDOW w AS (PARTITION BY e.cluster ORDER BY e.epoch)
),
rules AS (
    SELECT cluster, started_at, config, lead(started_at) OVER (PARTITION BY cluster ORDER BY epoch) AS ended_at
    FROM changed WHERE changed
),
served AS ( -- the resources that the server served last
    SELECT DISTINCT d.cluster, coalesce(item #>> '{metadata,name}', '') AS api_group, served.resource ->> 'resource' AS resource
    FROM (
        SELECT DISTINCT ON (v.cluster, v.path) v.cluster, o.content
        FROM kuberewind.server_data v
        LEFT JOIN kuberewind.documents o ON o.cluster = v.cluster AND o.digest = v.digest
        WHERE v.path IN ('/api', '/apis')
        ORDER BY v.cluster, v.path, v.observed_at DESC
    ) d
    CROSS JOIN LATERAL jsonb_path_query(d.content::jsonb, 'lax $.items[*]') item
    CROSS JOIN LATERAL jsonb_path_query(item, 'lax $.versions[*].resources[*]') served (resource)
    WHERE served.resource -> 'verbs' @> '["list", "watch"]'
),
left_out AS (
    SELECT r.cluster, r.started_at, r.ended_at, x.api_group, x.resource, o.whole, o.rules
    FROM rules r
    JOIN (
        SELECT cluster, api_group, resource FROM served
        UNION
        SELECT cluster, api_group, resource FROM kuberewind.streams
    ) x ON x.cluster = r.cluster
    CROSS JOIN LATERAL kuberewind.record_left_out(r.config, x.api_group, x.resource) o
    WHERE (r.config -> 'include' IS DISTINCT FROM '[]' OR r.config -> 'exclude' IS DISTINCT FROM '[]') AND o.rules IS NOT NULL
),
holes AS (
    SELECT g.cluster, g.stream, g.gap, g.from_at, g.to_at, g.from_rv, g.to_rv, g.cause, g.detail, g.outcome, g.appeared, g.changed, g.vanished, g.unchanged
    FROM kuberewind.gaps_data g
    WHERE g.outcome IS DISTINCT FROM 'resumed'
    UNION ALL
    -- A list that is not complete, and not yet a gap.
    SELECT s.cluster, s.stream, NULL, CASE WHEN s.position IS NOT NULL THEN s.positioned_at END, NULL, s.position, NULL,
        CASE WHEN s.position IS NULL THEN 'first_list' ELSE 'relist' END, concat_ws(': ', s.state, nullif(s.detail, '')), NULL, NULL, NULL, NULL, NULL
    FROM kuberewind.streams s
    WHERE NOT s.synced AND NOT EXISTS (SELECT FROM kuberewind.gaps_data g WHERE g.cluster = s.cluster AND g.stream = s.stream AND g.closed_batch IS NULL)
    UNION ALL
    -- A resource that was recorded once, and is excluded now. If one was excluded for a while and anything was missed,
    -- it has a gap.
    SELECT s.cluster, s.stream, NULL, least(s.positioned_at, o.started_at), NULL, s.position, NULL, 'configuration', o.rules, NULL, NULL, NULL, NULL, NULL
    FROM kuberewind.streams s
    JOIN left_out o ON o.cluster = s.cluster AND o.api_group = s.api_group AND o.resource = s.resource AND o.whole AND o.ended_at IS NULL
    WHERE s.synced AND NOT EXISTS (SELECT FROM kuberewind.gaps_data g WHERE g.cluster = s.cluster AND g.stream = s.stream AND g.closed_batch IS NULL)
),
stretches AS (
    -- Before the first hole: only if the stream began with its resource, and needed no list.
    SELECT s.cluster, s.stream, s.started_at AS from_at, h.from_at AS to_at, NULL AS from_rv, CASE WHEN h.stream IS NULL THEN s.position ELSE h.from_rv END AS to_rv, h.stream IS NULL AS last
    FROM kuberewind.streams s
    LEFT JOIN LATERAL (
        SELECT * FROM holes h WHERE h.cluster = s.cluster AND h.stream = s.stream ORDER BY h.from_at NULLS FIRST, h.gap LIMIT 1
    ) h ON true
    WHERE h.stream IS NULL OR h.from_at > s.started_at
    UNION ALL
    SELECT h.cluster, h.stream, h.to_at, lead(h.from_at) OVER w, h.to_rv, CASE WHEN lead(h.stream) OVER w IS NULL THEN s.position ELSE lead(h.from_rv) OVER w END,
        lead(h.stream) OVER w IS NULL
    FROM ( -- holes that do not lie within another
        SELECT h.*, max(coalesce(h.to_at, 'infinity')) OVER (PARTITION BY h.cluster, h.stream ORDER BY h.from_at NULLS FIRST, h.gap ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
        FROM holes h
    ) h
    JOIN kuberewind.streams s ON s.cluster = h.cluster AND s.stream = h.stream
    WHERE h.reached IS NULL OR h.reached < coalesce(h.to_at, 'infinity')
    WINDOW w AS (PARTITION BY h.cluster, h.stream ORDER BY h.from_at NULLS FIRST, h.gap)
)
SELECT c.name AS cluster, s.api_group, s.resource, s.scope, true AS complete, t.from_at,
    CASE WHEN NOT t.last THEN t.to_at WHEN NOT c.live THEN c.observed_at END AS to_at,
    t.from_rv, t.to_rv, t.last AND c.live AS live, NULL::text AS cause, NULL::text AS detail,
    NULL::text AS outcome, NULL::bigint AS appeared, NULL::bigint AS changed, NULL::bigint AS vanished, NULL::bigint AS unchanged, NULL::bigint AS gap
FROM stretches t
JOIN heads c ON c.cluster = t.cluster
JOIN kuberewind.streams s ON s.cluster = t.cluster AND s.stream = t.stream
WHERE t.from_at < CASE WHEN t.last THEN 'infinity' ELSE t.to_at END
UNION ALL
SELECT c.name, s.api_group, s.resource, s.scope, false, h.from_at, h.to_at, h.from_rv, h.to_rv, h.to_at IS NULL AND c.live, h.cause, h.detail,
    h.outcome, h.appeared, h.changed, h.vanished, h.unchanged, h.gap
FROM holes h
JOIN heads c ON c.cluster = h.cluster
JOIN kuberewind.streams s ON s.cluster = h.cluster AND s.stream = h.stream
UNION ALL
SELECT c.name, s.api_group, s.resource, s.scope, false, c.observed_at, NULL, t.to_rv, NULL, false, 'stopped', 'no recorder has written since; one that runs again catches up on what the server still has',
    NULL, NULL, NULL, NULL, NULL, NULL
FROM stretches t
JOIN heads c ON c.cluster = t.cluster AND NOT c.live
JOIN kuberewind.streams s ON s.cluster = t.cluster AND s.stream = t.stream
WHERE t.last AND t.from_at IS NOT NULL
UNION ALL
SELECT c.name, o.api_group, o.resource, '', false, o.started_at, o.ended_at, NULL, NULL, o.ended_at IS NULL AND c.live, 'configuration',
    CASE WHEN o.whole THEN o.rules ELSE 'some of its objects: ' || o.rules END, NULL, NULL, NULL, NULL, NULL, NULL
FROM left_out o
JOIN heads c ON c.cluster = o.cluster
WHERE NOT o.whole OR NOT EXISTS (SELECT FROM kuberewind.streams s WHERE s.cluster = o.cluster AND s.api_group = o.api_group AND s.resource = o.resource);
COMMENT ON VIEW kuberewind.record_coverage IS 'For the view coverage, and not a contract: the same, without the cut at dropped days.';
COMMENT ON COLUMN kuberewind.record_coverage.cluster IS 'Name of the cluster.';
COMMENT ON COLUMN kuberewind.record_coverage.api_group IS 'API group, '''' for the core group.';
COMMENT ON COLUMN kuberewind.record_coverage.resource IS 'Resource: the plural name, as in URLs.';
COMMENT ON COLUMN kuberewind.record_coverage.scope IS 'Namespace to which the recording of the resource is confined, '''' for all.';
COMMENT ON COLUMN kuberewind.record_coverage.complete IS 'Whether the record holds every version of the period.';
COMMENT ON COLUMN kuberewind.record_coverage.from_at IS 'When the period begins; NULL before the first list, when nothing is known.';
COMMENT ON COLUMN kuberewind.record_coverage.to_at IS 'When it ends; NULL while it continues.';
COMMENT ON COLUMN kuberewind.record_coverage.from_rv IS 'Resource version at its beginning; NULL if unknown.';
COMMENT ON COLUMN kuberewind.record_coverage.to_rv IS 'Resource version at its end, or its latest while it continues; NULL if unknown.';
COMMENT ON COLUMN kuberewind.record_coverage.live IS 'Whether it continues now: false for past periods, and for all if no recorder has written for five minutes.';
COMMENT ON COLUMN kuberewind.record_coverage.cause IS 'Why a period is incomplete: a cause as in gaps, relist (a list is running), configuration (excluded on purpose), or stopped (no recorder runs).';
COMMENT ON COLUMN kuberewind.record_coverage.detail IS 'What the server or the recorder says about it; for configuration, the rules.';
COMMENT ON COLUMN kuberewind.record_coverage.outcome IS 'How it ended, as in gaps: with equal, the list that ended it had no changes, but versions in between may have been missed.';
COMMENT ON COLUMN kuberewind.record_coverage.appeared IS 'Objects that the list at its end had and the record did not.';
COMMENT ON COLUMN kuberewind.record_coverage.changed IS 'Objects that the list had in another version.';
COMMENT ON COLUMN kuberewind.record_coverage.vanished IS 'Objects that the list no longer had: their deletes are inferred.';
COMMENT ON COLUMN kuberewind.record_coverage.unchanged IS 'Objects that the list had in the recorded version.';
COMMENT ON COLUMN kuberewind.record_coverage.gap IS 'Number of the gap, as in gaps; NULL if there is none for it.';

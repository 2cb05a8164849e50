-- Patches in SQL: a document with an RFC 6902 patch applied.

CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 115;

-- Functions run with the rights of their caller, read only views, and resolve names in pg_catalog only. Functions that
-- begin with record_ serve the others.

-- The tokens of a JSON pointer (RFC 6901) into doc, NULL if it is not one. jsonb accepts -1 and 01 as places in an
-- array, and RFC 6901 does not: the function accepts them only as keys.
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
COMMENT ON FUNCTION kuberewind.record_tokens(jsonb, text) IS 'For the functions of this schema, and not a contract: the tokens of a JSON pointer into a document, NULL if it is not one.';

-- jsonb_set() appends a value whose place does not exist in an array, and returns NULL for a NULL. So this function
-- checks each value first.
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
COMMENT ON FUNCTION kuberewind.apply_patch(jsonb, jsonb) IS 'The document with an RFC 6902 patch applied, as in the column patch of deltas. Members that the RFC does not name, such as "old", are ignored. An operation that does not apply is an error that names it.';

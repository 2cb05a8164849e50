package erasure

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/patch"
)

// scan finds the lives with rows that may hold the value. It scans the rows after the previous scan.
func (e *erasing) scan(ctx context.Context, db querier) error {
	var last int64
	if err := db.QueryRow(ctx, `SELECT seq FROM kuberewind.heads WHERE cluster = $1`, e.options.Cluster).Scan(&last); err != nil {
		return err
	}
	rows, err := db.Query(ctx, `SELECT first_at, last_at FROM kuberewind.days WHERE cluster = $1 AND last_seq > $2 ORDER BY day`, e.options.Cluster, e.scanned)
	if err != nil {
		return err
	}
	type day struct{ first, last time.Time }
	days, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d day, err error) { return d, row.Scan(&d.first, &d.last) })
	if err != nil {
		return err
	}
	for _, d := range days {
		if err := e.scanDay(ctx, db, d.first, d.last, last); err != nil {
			return err
		}
	}
	e.scanned = last
	return e.named(ctx, db)
}

func (e *erasing) scanDay(ctx context.Context, db querier, first, last time.Time, to int64) error {
	rows, err := db.Query(ctx, `
		SELECT DISTINCT d.object_id FROM kuberewind.deltas_data d
		JOIN kuberewind.streams s ON s.cluster = d.cluster AND s.stream = d.stream
		JOIN kuberewind.lives l ON l.cluster = d.cluster AND l.object_id = d.object_id
		WHERE d.cluster = $1 AND d.observed_at BETWEEN $2 AND $3 AND d.seq > $4 AND d.seq <= $5
		  AND ($6::text IS NULL OR s.resource = $6) AND ($7::text IS NULL OR s.api_group = $7)
		  AND ($8::text IS NULL OR l.namespace = $8) AND ($9::text IS NULL OR l.name = $9)
		  AND EXISTS (SELECT FROM unnest($10::text[]) run WHERE strpos(d.patch::text, run) > 0 OR strpos(d.object::text, run) > 0 OR position(convert_to(run, 'UTF8') IN d.exact) > 0)`,
		e.options.Cluster, first, last, e.scanned, to, e.scope.resource, e.scope.group, e.scope.namespace, e.scope.name, textsOf(e.value.runs))
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	for _, id := range ids {
		e.objects[id] = true
	}
	var managed int64
	err = db.QueryRow(ctx, `
		SELECT count(*) FROM kuberewind.deltas_data d WHERE d.cluster = $1 AND d.observed_at BETWEEN $2 AND $3 AND d.seq > $4 AND d.seq <= $5
		  AND EXISTS (SELECT FROM unnest($6::text[]) form WHERE strpos(concat_ws(' ', d.manager, d.manager_hint, d.subresource), form) > 0)`,
		e.options.Cluster, first, last, e.scanned, to, textsOf(e.value.forms)).Scan(&managed)
	e.managed += managed
	return err
}

func textsOf(all [][]byte) []string {
	out := make([]string, len(all))
	for i, text := range all {
		out[i] = string(text)
	}
	return out
}

// named counts the texts that keep the value. They cannot change, because the digests of batches cover names and the details of gaps.
func (e *erasing) named(ctx context.Context, db querier) error {
	err := db.QueryRow(ctx, `
		WITH keeps (kind, text) AS (
			SELECT 'name', concat_ws(' ', namespace, name) FROM kuberewind.lives WHERE cluster = $1
			UNION ALL SELECT 'name', concat_ws(' ', namespace, name) FROM kuberewind.exclusions WHERE cluster = $1
			UNION ALL SELECT 'text', detail FROM kuberewind.gaps_data WHERE cluster = $1
			UNION ALL SELECT 'text', concat_ws(' ', detail, filter) FROM kuberewind.streams WHERE cluster = $1
			UNION ALL SELECT 'text', config::text FROM kuberewind.epochs WHERE cluster = $1
			UNION ALL SELECT 'text', reason FROM kuberewind.prunes_data WHERE cluster = $1
			UNION ALL SELECT 'text', concat_ws(' ', reason, scope) FROM kuberewind.erasures_data WHERE cluster = $1
		)
		SELECT count(*) FILTER (WHERE kind = 'name'), count(*) FILTER (WHERE kind = 'text') FROM keeps
		WHERE EXISTS (SELECT FROM unnest($2::text[]) form WHERE strpos(text, form) > 0)`,
		e.options.Cluster, textsOf(e.value.forms)).Scan(&e.report.Named, &e.report.Mentions)
	e.report.Mentions += e.managed
	return err
}

// checkpoints drops the checkpoints from the first changed row on, because they may hold a changed text. They are derived data; the recorder
// makes new ones.
func (e *erasing) checkpoints(ctx context.Context, db querier) error {
	if e.first == 0 {
		return nil
	}
	if e.options.DryRun {
		return db.QueryRow(ctx, `SELECT count(*) FROM kuberewind.checkpoints WHERE cluster = $1 AND checkpoint >= $2`, e.options.Cluster, e.first).Scan(&e.report.Checkpoints)
	}
	if _, err := db.Exec(ctx, `DELETE FROM kuberewind.checkpoint_blocks WHERE cluster = $1 AND checkpoint >= $2`, e.options.Cluster, e.first); err != nil {
		return err
	}
	tag, err := db.Exec(ctx, `DELETE FROM kuberewind.checkpoints WHERE cluster = $1 AND checkpoint >= $2`, e.options.Cluster, e.first)
	e.report.Checkpoints = tag.RowsAffected()
	return err
}

// counts drops the counts of the days with changed rows, because a delta may have another class now. They are derived data; the recorder
// counts again.
func (e *erasing) counts(ctx context.Context, db querier) error {
	days := make([]string, 0, len(e.days))
	for day := range e.days {
		days = append(days, day)
	}
	_, err := db.Exec(ctx, `DELETE FROM kuberewind.activity WHERE cluster = $1 AND day = ANY ($2::text[]::date[])`, e.options.Cluster, days)
	return err
}

type document struct {
	digest  []byte
	content []byte
}

// documents erases the value from the recorded documents of the server.
func (e *erasing) documents(ctx context.Context, db querier) error {
	if !e.everything() {
		return nil
	}
	rows, err := db.Query(ctx, `
		SELECT digest, content::text FROM kuberewind.documents
		WHERE cluster = $1 AND EXISTS (SELECT FROM unnest($2::text[]) run WHERE strpos(content::text, run) > 0)`, e.options.Cluster, textsOf(e.value.runs))
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d document, err error) { return d, row.Scan(&d.digest, &d.content) })
	if err != nil {
		return err
	}
	for _, d := range found {
		if err := e.document(ctx, db, d); err != nil {
			return err
		}
	}
	return nil
}

func (e *erasing) document(ctx context.Context, db querier, d document) error {
	canonical, err := patch.Canonical(d.content)
	if err != nil {
		return err
	}
	clean, err := e.value.everywhere(canonical)
	if err != nil || string(clean) == string(canonical) {
		return err
	}
	e.report.Documents++
	if e.options.DryRun {
		return nil
	}
	digest := sha256.Sum256(clean)
	for _, statement := range []struct {
		sql  string
		args []any
	}{
		{`INSERT INTO kuberewind.documents (cluster, digest, content) VALUES ($1, $2, $3::text::json) ON CONFLICT DO NOTHING`, []any{e.options.Cluster, digest[:], string(clean)}},
		{`UPDATE kuberewind.server_data SET digest = $2 WHERE cluster = $1 AND digest = $3`, []any{e.options.Cluster, digest[:], d.digest}},
		{`DELETE FROM kuberewind.documents WHERE cluster = $1 AND digest = $2`, []any{e.options.Cluster, d.digest}},
	} {
		if _, err := db.Exec(ctx, statement.sql, statement.args...); err != nil {
			return err
		}
	}
	return nil
}

// pathsOf returns the paths of the operations of a patch.
func pathsOf(change []byte) []string {
	var operations []struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(change, &operations); err != nil {
		return nil
	}
	paths := make([]string, len(operations))
	for i, o := range operations {
		paths[i] = o.Path
	}
	return paths
}

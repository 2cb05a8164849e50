package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

// watched measures what is asked of the one object with many versions, and compares each answer with full rows.
func (b *bench) watched(ctx context.Context) error {
	for _, r := range b.records {
		versions, err := b.versionsOfFullRows(ctx, r)
		if err != nil {
			return err
		}
		r.result.Versions = len(versions)
		for _, place := range append([]float64{0.5}, b.instants(b.Instants)...) {
			if err := b.ask(ctx, r, versions, b.seqAt(r, place)); err != nil {
				return err
			}
		}
		// What was asked first has warmed up.
		r.result.VersionsInGo, r.result.ObjectAt, r.result.HistoryInSQL = r.result.VersionsInGo[1:], r.result.ObjectAt[1:], r.result.HistoryInSQL[1:]
	}
	return nil
}

type fullVersion struct {
	seq int64
	doc patch.Doc
}

func (b *bench) versionsOfFullRows(ctx context.Context, r *record) ([]fullVersion, error) {
	rows, err := r.pool.Query(ctx, `SELECT seq, object FROM bench.full_rows WHERE object_id = $1 ORDER BY seq`, b.fleet.watched.id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanVersion)
}

func scanVersion(row pgx.CollectableRow) (v fullVersion, err error) {
	var object []byte
	if err = row.Scan(&v.seq, &object); err != nil {
		return v, err
	}
	v.doc, err = patch.Canonical(object)
	return v, err
}

func (b *bench) ask(ctx context.Context, r *record, versions []fullVersion, seq int64) error {
	started := time.Now()
	n := 0
	for v, err := range r.history.Versions(ctx, history.Query{ObjectID: b.fleet.watched.id}) {
		if err != nil {
			return err
		}
		if n >= len(versions) || v.Seq != versions[n].seq || !bytes.Equal(v.Doc, versions[n].doc) {
			return fmt.Errorf("%w: history gives another version %d, of seq %d", errDiffers, n+1, v.Seq)
		}
		n++
	}
	if n != len(versions) {
		return fmt.Errorf("%w: history gives %d versions, and there are %d", errDiffers, n, len(versions))
	}
	r.result.VersionsInGo = append(r.result.VersionsInGo, time.Since(started))

	kind := b.fleet.kinds[b.fleet.watched.kind]
	name := []any{clusterName, kind.resource.Group, kind.resource.Resource, b.fleet.watched.values[holeNamespace], b.fleet.watched.values[holeName]}
	started = time.Now()
	var object []byte
	err := r.pool.QueryRow(ctx, `SELECT kuberewind.object_at($1, $2, $3, $4, $5, $6::timestamptz)`, append(name, b.fleet.at(seq))...).Scan(&object)
	if err != nil {
		return err
	}
	r.result.ObjectAt = append(r.result.ObjectAt, time.Since(started))
	doc, err := patch.Canonical(object)
	if err != nil {
		return err
	}
	var want patch.Doc
	for _, v := range versions {
		if v.seq <= seq {
			want = v.doc
		}
	}
	if !bytes.Equal(doc, want) {
		return fmt.Errorf("%w: object_at gives another object at seq %d", errDiffers, seq)
	}

	started = time.Now()
	rows, err := r.pool.Query(ctx, `SELECT seq, object FROM kuberewind.history($1, $2, $3, $4, $5, NULL::timestamptz)`, name...)
	if err != nil {
		return err
	}
	got, err := pgx.CollectRows(rows, scanVersion)
	if err != nil {
		return err
	}
	r.result.HistoryInSQL = append(r.result.HistoryInSQL, time.Since(started))
	if len(got) != len(versions) {
		return fmt.Errorf("%w: history() gives %d versions, and there are %d", errDiffers, len(got), len(versions))
	}
	for i := range got {
		if got[i].seq != versions[i].seq || !bytes.Equal(got[i].doc, versions[i].doc) {
			return fmt.Errorf("%w: history() gives another version %d, of seq %d", errDiffers, i+1, got[i].seq)
		}
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

const (
	versionsInGo = "through history"
	historyInSQL = "by history() in SQL"
	objectInSQL  = "one by object_at() in SQL"
)

// oneObject measures what is asked of the one object with many versions, and compares each answer with full rows.
func (b *bench) oneObject() measure.Experiment {
	const number = "versions"
	e := measure.Experiment{
		Name: "rebuild-object", Title: "All versions of one object, and one of them", WarmUp: true,
		Quantities: []measure.Quantity{
			{Name: number, Unit: "there are"}, {Name: versionsInGo, Unit: "ms"}, {Name: historyInSQL, Unit: "ms"}, {Name: objectInSQL, Unit: "ms"},
		},
	}
	at := b.instants(b.Rounds)
	for _, r := range b.records {
		var versions []fullVersion
		e.Ways = append(e.Ways, measure.Way{Name: r.String(), Run: func(ctx context.Context, round int) (values measure.Values, err error) {
			if versions == nil {
				if versions, err = b.versionsOfFullRows(ctx, r); err != nil {
					return nil, err
				}
			}
			if values, err = b.ask(ctx, r, versions, b.seqAt(r, b.Interval, at(round))); err != nil {
				return nil, err
			}
			values[number] = float64(len(versions))
			return values, nil
		}})
	}
	return e
}

type fullVersion struct {
	seq int64
	doc patch.Doc
}

func (b *bench) versionsOfFullRows(ctx context.Context, r *record) ([]fullVersion, error) {
	rows, err := r.pool.Query(ctx, `SELECT seq, object FROM bench.full_rows WHERE object_id = $1 ORDER BY seq`, b.fleet.node.objectID)
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

func (b *bench) ask(ctx context.Context, r *record, versions []fullVersion, seq int64) (measure.Values, error) {
	values := make(measure.Values)
	started := time.Now()
	n := 0
	for v, err := range r.history.Versions(ctx, history.Query{ObjectID: b.fleet.node.objectID}) {
		if err != nil {
			return nil, err
		}
		if n >= len(versions) || v.Seq != versions[n].seq || !bytes.Equal(v.Doc, versions[n].doc) {
			return nil, fmt.Errorf("%w: history gives another version %d, of seq %d", errDiffers, n+1, v.Seq)
		}
		n++
	}
	if n != len(versions) {
		return nil, fmt.Errorf("%w: history gives %d versions, and there are %d", errDiffers, n, len(versions))
	}
	values[versionsInGo] = millis(time.Since(started))

	kind := b.fleet.set.Resources()[b.fleet.node.resource]
	name := []any{clusterName, kind.Group, kind.Resource, b.fleet.node.namespace, b.fleet.node.name}
	started = time.Now()
	var object []byte
	err := r.pool.QueryRow(ctx, `SELECT kuberewind.object_at($1, $2, $3, $4, $5, $6::timestamptz)`, append(name, b.fleet.at(seq))...).Scan(&object)
	if err != nil {
		return nil, err
	}
	values[objectInSQL] = millis(time.Since(started))
	doc, err := patch.Canonical(object)
	if err != nil {
		return nil, err
	}
	var want patch.Doc
	for _, v := range versions {
		if v.seq <= seq {
			want = v.doc
		}
	}
	if !bytes.Equal(doc, want) {
		return nil, fmt.Errorf("%w: object_at gives another object at seq %d", errDiffers, seq)
	}

	started = time.Now()
	rows, err := r.pool.Query(ctx, `SELECT seq, object FROM kuberewind.history($1, $2, $3, $4, $5, NULL::timestamptz)`, name...)
	if err != nil {
		return nil, err
	}
	got, err := pgx.CollectRows(rows, scanVersion)
	if err != nil {
		return nil, err
	}
	values[historyInSQL] = millis(time.Since(started))
	if len(got) != len(versions) {
		return nil, fmt.Errorf("%w: history() gives %d versions, and there are %d", errDiffers, len(got), len(versions))
	}
	for i := range got {
		if got[i].seq != versions[i].seq || !bytes.Equal(got[i].doc, versions[i].doc) {
			return nil, fmt.Errorf("%w: history() gives another version %d, of seq %d", errDiffers, i+1, got[i].seq)
		}
	}
	return values, nil
}

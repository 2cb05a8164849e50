package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/answers"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// answered measures the answers of replay: on the record that the run names, else on one that it makes as a recorder would. Its days have
// 100,000 deltas each. PostgreSQL waits for no disk, which only writing would feel.
func answered(ctx context.Context, run *measure.Run) error {
	if run.Record != "" {
		return answers.Measure(ctx, run, run.Record, "a record that was there")
	}
	size := map[string]struct {
		deltas int64
		live   int
	}{quick: {30_000, 1000}, middle: {300_000, 20_000}, full: {3_000_000, 20_000}, largest: {3_000_000, 20_000}}[run.Report.Size]
	return run.OnServer(ctx, measure.ServerOptions{}, func(server *measure.Server) error {
		url, err := generatedRecord(ctx, run, server, size.deltas, size.live, checkpoint.Interval)
		if err != nil {
			return err
		}
		return answers.Measure(ctx, run, url, "generated")
	})
}

// generatedRecord makes a database with a record that generate makes.
func generatedRecord(ctx context.Context, run *measure.Run, server *measure.Server, deltas int64, live int, every func(live int64) int64) (url string, err error) {
	if url, err = server.NewRecord(ctx); err != nil {
		return "", err
	}
	return url, generate(ctx, run, url, deltas, live, every)
}

// generate writes deltas into an empty record, 100,000 a day, with checkpoints at the interval for so many live objects.
func generate(ctx context.Context, run *measure.Run, url string, deltas int64, live int, every func(live int64) int64) error {
	f, err := newFleet(run.Report.Seed, live, deltas, 100_000)
	if err != nil {
		return err
	}
	defer f.stop()
	w, err := newWriter(ctx, url, f, false)
	if err != nil {
		return err
	}
	defer w.close()
	interval := every(f.live)
	b := &bench{Settings: Settings{Live: int(f.live), Interval: interval}}
	c := b.newCheckpoints(w)
	c.every = interval
	told := int64(0)
	w.cut, w.after = c.due, func(ctx context.Context, seq int64) error {
		if tenth := seq / max(deltas/10, 1); tenth > told {
			told = tenth
			run.Say("%s deltas recorded", measure.Number(float64(seq)))
		}
		return c.after(ctx, seq)
	}
	if err := w.record(ctx, deltas); err != nil {
		return err
	}
	if err := w.namespaces(ctx); err != nil {
		return err
	}
	_, err = w.admin.Exec(ctx, `VACUUM (ANALYZE)`)
	return err
}

// namespaces records the Namespaces of what is on record: the generated data has none.
func (w *writer) namespaces(ctx context.Context) error {
	stream, err := w.sink.Stream(ctx, postgres.StreamSpec{Resource: "namespaces", Version: "v1", Kind: "Namespace"})
	if err != nil {
		return err
	}
	rows, err := w.admin.Query(ctx, `SELECT DISTINCT namespace FROM kuberewind.lives WHERE namespace <> '' ORDER BY namespace`)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	now := w.sinkTime().Add(time.Second)
	items := make([]postgres.Item, len(names))
	for i, name := range names {
		uid := "namespace-" + name
		doc, err := patch.Canonical([]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + name + `","uid":"` + uid + `","resourceVersion":"` + w.fleet.rv + `"}}`))
		if err != nil {
			return err
		}
		items[i] = postgres.Item{
			Stream: stream.ID(), Kind: postgres.Delta, Type: delta.Sync, Source: delta.SourceList, Observed: now, Version: "v1",
			Object: &version{name: name, uid: uid, rv: w.fleet.rv, doc: doc},
		}
	}
	batch, err := w.sink.Encode(items)
	if err != nil {
		return err
	}
	return w.sink.Commit(ctx, batch)
}

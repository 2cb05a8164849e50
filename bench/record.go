package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A record is one of a size, in a database of its own.
type record struct {
	deltas  int64
	url     string
	pool    *pgxpool.Pool
	history *history.Record
}

func (r *record) String() string { return measure.Number(float64(r.deltas)) + " deltas" }

const clusterName = "bench"

// The plain way: every version whole, and whose it is beside it, so that a reader need not look into the object. It is not logged, because only reading it is
// measured. lz4 as in the record, where the server has it.
const makeFullRows = `
	CREATE SCHEMA bench;
	CREATE UNLOGGED TABLE bench.full_rows (
		seq         bigint      NOT NULL PRIMARY KEY,
		object_id   bigint      NOT NULL,
		observed_at timestamptz NOT NULL,
		rv          text        NOT NULL,
		type        text        NOT NULL,
		api_group   text        NOT NULL,
		resource    text        NOT NULL,
		namespace   text        NOT NULL,
		name        text        NOT NULL,
		object      jsonb       NOT NULL
	);
	CREATE INDEX full_rows_by_object ON bench.full_rows (object_id, seq)`

var fullColumns = []string{"seq", "object_id", "observed_at", "rv", "type", "api_group", "resource", "namespace", "name", "object"}

// A writer records what a fleet does, as the recorder would. If full rows are asked for, it writes each version into bench.full_rows too.
type writer struct {
	full    bool
	fleet   *fleet
	sink    *postgres.Sink
	pool    *pgxpool.Pool // the sink's
	admin   *pgxpool.Pool
	batch   int                                        // deltas that the recorder puts into one transaction when much waits
	streams []int32                                    // by resource of the fleet's set
	cut     func(seq int64) bool                       // whether a batch has to end with this seq
	after   func(ctx context.Context, seq int64) error // called after each batch
}

func newWriter(ctx context.Context, url string, f *fleet, full bool) (*writer, error) {
	w := &writer{full: full, fleet: f, batch: config.Default().BatchRows}
	var err error
	if w.admin, err = pgxpool.New(ctx, url); err != nil {
		return nil, err
	}
	if full {
		_, err = w.admin.Exec(ctx, makeFullRows)
	}
	if err == nil {
		w.pool, err = postgres.NewPool(ctx, url, "kuberewind bench")
	}
	if err == nil {
		w.sink, err = postgres.Open(ctx, postgres.Config{
			Pool: w.pool, ClusterUID: "d0c8a1f0-6f7a-4d61-9d0e-3b2f4c5a6b7c", ClusterName: clusterName, Recorder: "bench", Version: "bench",
			Now: w.sinkTime,
		})
	}
	for _, spec := range f.specs() {
		if err != nil {
			break
		}
		var st *postgres.Stream
		if st, err = w.sink.Stream(ctx, spec); err == nil {
			w.streams = append(w.streams, st.ID())
		}
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *writer) close() {
	if w.sink != nil {
		w.sink.Close()
	}
	if w.pool != nil {
		w.pool.Close()
	}
	w.admin.Close()
}

// sinkTime is the record's time: that of the fleet.
func (w *writer) sinkTime() time.Time { return w.fleet.at(w.fleet.seq) }

// idle closes all connections, so that the database can be copied.
func (w *writer) idle() {
	w.pool.Reset()
	w.admin.Reset()
}

// begin records the first lists.
func (w *writer) begin(ctx context.Context) error {
	first, err := w.fleet.first()
	if err != nil {
		return err
	}
	if err := w.write(ctx, first, delta.SourceList); err != nil {
		return err
	}
	var ends []postgres.Item
	for _, stream := range w.streams {
		rv := w.fleet.rv
		ends = append(ends, postgres.Item{
			Stream: stream, Kind: postgres.Marked, Observed: w.fleet.at(w.fleet.seq), Position: rv, Marker: delta.Marker{Kind: delta.Replaced, Cause: delta.CauseFirstList, ToRV: rv},
		})
	}
	return w.commit(ctx, ends)
}

// record goes on to a seq.
func (w *writer) record(ctx context.Context, to int64) error {
	if w.fleet.seq == 0 {
		if err := w.begin(ctx); err != nil {
			return err
		}
		if err := w.after(ctx, w.fleet.seq); err != nil {
			return err
		}
	}
	for w.fleet.seq < to {
		var batch []change
		for len(batch) < w.batch && w.fleet.seq < to {
			c, err := w.fleet.next()
			if err != nil {
				return err
			}
			batch = append(batch, c)
			if w.cut(w.fleet.seq) {
				break
			}
		}
		if err := w.write(ctx, batch, delta.SourceWatch); err != nil {
			return err
		}
		if err := w.after(ctx, w.fleet.seq); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) write(ctx context.Context, changes []change, source delta.Source) error {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		items := make([]postgres.Item, len(changes))
		for i, c := range changes {
			items[i] = postgres.Item{
				Stream: w.streams[c.resource], Kind: postgres.Delta, Type: c.action, Source: source, Observed: c.observed, Object: c.version, Version: "v1",
			}
			if source == delta.SourceWatch {
				items[i].Position = c.rv
			}
		}
		return w.commit(ctx, items)
	})
	if w.full {
		both.Go(func() error { return w.writeFullRows(ctx, changes) })
	}
	if err := both.Wait(); err != nil {
		return fmt.Errorf("write deltas up to %d: %w", changes[len(changes)-1].seq, err)
	}
	return nil
}

func (w *writer) writeFullRows(ctx context.Context, changes []change) error {
	resources := w.fleet.set.Resources()
	_, err := w.admin.CopyFrom(ctx, pgx.Identifier{"bench", "full_rows"}, fullColumns, pgx.CopyFromSlice(len(changes), func(i int) ([]any, error) {
		c := &changes[i]
		of := resources[c.resource]
		return []any{c.seq, c.objectID, c.observed, c.rv, c.action, of.Group, of.Resource, c.namespace, c.name, []byte(c.doc)}, nil
	}))
	return err
}

func (w *writer) commit(ctx context.Context, items []postgres.Item) error {
	for len(items) > 0 {
		n := min(len(items), w.batch)
		batch, err := w.sink.Encode(items[:n])
		if err != nil {
			return err
		}
		last := batch.LastSeq()
		if err := w.sink.Commit(ctx, batch); err != nil {
			return err
		}
		if items = items[n:]; len(items) == 0 && last != w.fleet.seq {
			return fmt.Errorf("the record ends with seq %d and not %d: something was taken as recorded already", last, w.fleet.seq)
		}
	}
	return nil
}

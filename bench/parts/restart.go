package parts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
)

// restartRate is how many events a second the cluster has while recorders are stopped and started.
const restartRate = 20

const (
	firstEvent  = "first event"
	caughtUp    = "caught up"
	resumed     = "resumed"
	relisted    = "relisted"
	firstListed = "listed into a fresh record"
)

// Restart measures how long a recorder needs after a stop, from the start of its process, until the first event of the resumed watches is on record, and
// until it has caught up with what was written before it started; against one that has to list everything again and compare it with its record, and one that begins a record: until their
// lists are on record.
func Restart(ctx context.Context, run *measure.Run, sizes Sizes) error {
	set, err := data.Generate(data.Settings{Seed: run.Report.Seed, Live: sizes.Stopped, Events: int(sizes.Going.Seconds()) * restartRate})
	if err != nil {
		return err
	}
	live, _ := set.Len()
	return run.OnServer(ctx, measure.ServerOptions{Durable: !sizes.NoSync}, func(database *measure.Server) error {
		return onServed(run, database, set, restartRate, func(s *served) error {
			r := &restart{served: s}
			if err := r.begin(ctx); err != nil {
				return err
			}
			return run.Do(ctx, measure.Experiment{
				Name: "restart", Title: "Start after a stop", Data: fmt.Sprintf("generated: %s live objects, %d events a second", measure.Number(float64(live)), restartRate),
				Quantities: []measure.Quantity{{Name: firstEvent, Unit: "s"}, {Name: caughtUp, Unit: "s"}, {Name: recorderCPU, Unit: "s"}},
				Ways: []measure.Way{
					{Name: resumed, Run: func(ctx context.Context, _ int) (measure.Values, error) { return r.run(ctx, r.stopped, r.resume) }},
					{Name: relisted, Run: func(ctx context.Context, _ int) (measure.Values, error) { return r.run(ctx, r.forgotten, r.list) }},
					{Name: firstListed, Run: func(ctx context.Context, _ int) (measure.Values, error) { return r.run(ctx, "", r.list) }},
				},
				Compare: []measure.Comparison{
					{Number: "10", What: "a relist, to the first resumed event", Quantity: firstEvent, Of: relisted, To: resumed, AtLeast: 1, Aim: 5},
					{Number: "10", What: "a first list, to the first resumed event", Quantity: firstEvent, Of: firstListed, To: resumed},
					{Number: "10", What: "a relist, to having caught up", Quantity: caughtUp, Of: relisted, To: resumed},
				},
			})
		})
	})
}

// A restart starts recorders of one cluster that goes on all the time.
type restart struct {
	*served
	stopped   string // a record whose recorder has stopped
	forgotten string // the same, with no positions to resume from
	seq       int64  // the last that is in both
}

// begin makes the records that recorders are started with.
func (r *restart) begin(ctx context.Context) (err error) {
	if r.stopped, err = r.database.NewRecord(ctx); err != nil {
		return err
	}
	recorder, err := r.record(ctx, r.stopped)
	if err != nil {
		return err
	}
	live, _ := r.set.Len()
	err = on(ctx, r.stopped, func(db *pgx.Conn) error {
		if err := r.listed(ctx, recorder, db); err != nil {
			return err
		}
		if err := r.watched(ctx, recorder); err != nil {
			return err
		}
		r.Go()
		return r.recorded(ctx, recorder, db, live+restartRate)
	})
	if err := errors.Join(err, recorder.end()); err != nil {
		return err
	}
	if err := on(ctx, r.stopped, func(db *pgx.Conn) error {
		return db.QueryRow(ctx, `SELECT seq FROM kuberewind.heads`).Scan(&r.seq)
	}); err != nil {
		return err
	}
	if r.forgotten, err = r.database.Copy(ctx, r.stopped); err != nil {
		return err
	}
	return on(ctx, r.forgotten, func(db *pgx.Conn) error {
		_, err := db.Exec(ctx, `UPDATE kuberewind.streams SET synced = false`)
		return err
	})
}

// run starts a recorder on a copy of a record, or on an empty one, and waits for what is to come about.
func (r *restart) run(ctx context.Context, record string, await func(context.Context, *subject, *pgx.Conn) (measure.Values, error)) (values measure.Values, err error) {
	var database string
	if record == "" {
		database, err = r.database.NewRecord(ctx)
	} else {
		database, err = r.database.Copy(ctx, record)
	}
	if err != nil {
		return nil, err
	}
	recorder, err := r.record(ctx, database)
	if err != nil {
		return nil, err
	}
	err = on(ctx, database, func(db *pgx.Conn) error {
		if values, err = await(ctx, recorder, db); err != nil {
			return err
		}
		used, err := measure.CPUOfTree(recorder.pid)
		values[recorderCPU] = used.Seconds()
		return err
	})
	return values, errors.Join(err, recorder.end(), r.database.Drop(ctx, database))
}

// resume waits until the watches go on, and then until all is on record that was written before.
func (r *restart) resume(ctx context.Context, recorder *subject, db *pgx.Conn) (measure.Values, error) {
	missed := r.Progress().Written
	live, _ := r.set.Len()
	values := make(measure.Values)
	var at *time.Time
	err := recorder.until(ctx, "a resumed event is on record", func() (bool, error) {
		// The batch says when, to the microsecond; to look every now and then does not.
		err := db.QueryRow(ctx, `SELECT min(b.committed_at) FROM kuberewind.batches AS b JOIN kuberewind.deltas_data AS d ON d.seq BETWEEN b.first_seq AND b.last_seq
			WHERE d.seq > $1 AND d.source = 1`, r.seq).Scan(&at)
		return at != nil, err
	})
	if err != nil {
		return nil, err
	}
	values[firstEvent] = at.Sub(recorder.started).Seconds()
	if err := r.recorded(ctx, recorder, db, live+missed); err != nil {
		return nil, err
	}
	values[caughtUp] = time.Since(recorder.started).Seconds()
	return values, nil
}

// list waits until all lists are on record: no watch goes on before that of its own stream is.
func (r *restart) list(ctx context.Context, recorder *subject, db *pgx.Conn) (measure.Values, error) {
	if err := r.listed(ctx, recorder, db); err != nil {
		return nil, err
	}
	took := time.Since(recorder.started).Seconds()
	return measure.Values{firstEvent: took, caughtUp: took}, nil
}

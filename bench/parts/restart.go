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

const (
	// restartRate is how many events a second the cluster has while recorders are stopped and started.
	restartRate = 20
	// restartMissed is how many events a recorder that is started has missed.
	restartMissed = 2 * restartRate
)

const (
	firstEvent  = "first event"
	caughtUp    = "caught up"
	resumed     = "resumed"
	relisted    = "relisted"
	firstListed = "listed into a fresh record"
)

// Restart measures two times from the start of a recorder's process after a stop. One ends when the first event of the resumed
// watches is on record, the other when all writes before the start are. It compares them with a recorder that lists everything
// again, and one that begins a record, until their lists are on record. All of these are commits, and PostgreSQL dates them.
func Restart(ctx context.Context, run *measure.Run, sizes Sizes) error {
	set, err := data.Generate(data.Settings{Seed: run.Report.Seed, Live: sizes.Stopped, Events: int(sizes.Going.Seconds()) * restartRate})
	if err != nil {
		return err
	}
	live, _ := set.Len()
	return run.OnServer(ctx, measure.ServerOptions{Durable: !sizes.NoSync, DateCommits: true}, func(database *measure.Server) error {
		return onServed(run, database, set, restartRate, func(s *served) error {
			r := &restart{served: s}
			if err := r.begin(ctx); err != nil {
				return err
			}
			return errors.Join(run.Do(ctx, measure.Experiment{
				Name: "restart", Title: "Start after a stop",
				Data:       fmt.Sprintf("generated: %s live objects, %d events a second, %d of them missed", measure.Number(float64(live)), restartRate, restartMissed),
				Quantities: []measure.Quantity{{Name: firstEvent, Unit: "s"}, {Name: caughtUp, Unit: "s"}, {Name: recorderCPU, Unit: "s"}},
				Ways: []measure.Way{
					{Name: resumed, Run: func(ctx context.Context, _ int) (measure.Values, error) { return r.run(ctx, r.missing, r.resume) }},
					{Name: relisted, Run: func(ctx context.Context, _ int) (measure.Values, error) { return r.run(ctx, r.forgotten, r.list) }},
					{Name: firstListed, Run: func(ctx context.Context, _ int) (measure.Values, error) { return r.run(ctx, r.fresh, r.list) }},
				},
				Compare: []measure.Comparison{
					{Number: "10", What: "a relist, to the first resumed event", Quantity: firstEvent, Of: relisted, To: resumed, AtLeast: 1, Aim: 5},
					{Number: "10", What: "a first list, to the first resumed event", Quantity: firstEvent, Of: firstListed, To: resumed},
					{Number: "10", What: "a relist, to having caught up", Quantity: caughtUp, Of: relisted, To: resumed},
				},
			}), r.others.end())
		})
	})
}

// A restart starts recorders of one cluster that goes on all the time.
type restart struct {
	*served
	stopped string   // a record whose recorder has stopped
	others  *subject // watches all the time, because the data's server writes only watched resources
}

// A gone is a record that is to be gone on with.
type gone struct {
	database string
	seq      int64 // the last that is on record
	missed   int   // events that are not on record, when the recorder is started
}

// begin makes the record that recorders are started with. After it, the caller ends others.
func (r *restart) begin(ctx context.Context) (err error) {
	if r.stopped, err = r.database.NewRecord(ctx); err != nil {
		return err
	}
	if r.others, err = r.informers(ctx); err != nil {
		return err
	}
	err = r.until(ctx, r.stopped, func(recorder *subject, db *pgx.Conn) error {
		if err := r.listed(ctx, recorder, db); err != nil {
			return err
		}
		if err := r.watched(ctx, recorder); err != nil {
			return err
		}
		r.Go()
		return r.followed(ctx, recorder, db, restartRate)
	})
	if err != nil {
		return errors.Join(err, r.others.end())
	}
	return nil
}

// until runs a recorder until something has come about, and stops it.
func (r *restart) until(ctx context.Context, database string, is func(*subject, *pgx.Conn) error) error {
	recorder, err := r.record(ctx, database)
	if err != nil {
		return err
	}
	err = on(ctx, database, func(db *pgx.Conn) error { return is(recorder, db) })
	return errors.Join(err, recorder.end())
}

// followed waits until so many events are on record.
func (r *restart) followed(ctx context.Context, recorder *subject, db *pgx.Conn, events int) error {
	live, _ := r.set.Len()
	return r.recorded(ctx, recorder, db, live+events)
}

// missing makes a copy of the record whose recorder stopped so many events ago. The cluster goes on while others are measured;
// what happened then is put on record first.
func (r *restart) missing(ctx context.Context) (g gone, err error) {
	return r.missingWith(ctx, `CHECKPOINT`)
}

// forgotten is the same, with no positions to resume from.
func (r *restart) forgotten(ctx context.Context) (gone, error) {
	return r.missingWith(ctx, `UPDATE kuberewind.streams SET synced = false`, `CHECKPOINT`)
}

// fresh makes an empty record.
func (r *restart) fresh(ctx context.Context) (g gone, err error) {
	g.database, err = r.database.NewRecord(ctx)
	return g, err
}

func (r *restart) missingWith(ctx context.Context, statements ...string) (g gone, err error) {
	if g.database, err = r.database.Copy(ctx, r.stopped); err != nil {
		return g, err
	}
	if err := r.until(ctx, g.database, func(recorder *subject, db *pgx.Conn) error {
		return r.followed(ctx, recorder, db, r.Progress().Written)
	}); err != nil {
		return g, err
	}
	if err := on(ctx, g.database, func(db *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := db.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return db.QueryRow(ctx, `SELECT seq FROM kuberewind.heads`).Scan(&g.seq)
	}); err != nil {
		return g, err
	}
	return g, r.miss(ctx, &g)
}

// miss waits until a record has missed enough.
func (r *restart) miss(ctx context.Context, g *gone) error {
	live, _ := r.set.Len()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		p := r.Progress()
		switch g.missed = live + p.Written - int(g.seq); {
		case g.missed >= restartMissed:
			return nil
		case p.Written == p.Events:
			return errors.New("the cluster has come to its end before all recorders were started: it has to go on for longer")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// run starts a recorder on a record, and waits for what is to come about.
func (r *restart) run(ctx context.Context, begin func(context.Context) (gone, error), await func(context.Context, *subject, *pgx.Conn, gone) (measure.Values, error)) (values measure.Values, err error) {
	g, err := begin(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.until(ctx, g.database, func(recorder *subject, db *pgx.Conn) error {
		if values, err = await(ctx, recorder, db, g); err != nil {
			return err
		}
		used, err := measure.CPUOfTree(recorder.pid)
		values[recorderCPU] = used.Seconds()
		return err
	}); err != nil {
		return nil, err
	}
	return values, r.database.Drop(ctx, g.database)
}

// resume waits until all is on record that was missed, and says when the first and the last of that were.
func (r *restart) resume(ctx context.Context, recorder *subject, db *pgx.Conn, g gone) (measure.Values, error) {
	last := g.seq + int64(g.missed)
	if err := r.recorded(ctx, recorder, db, int(last)); err != nil {
		return nil, err
	}
	var first, all time.Time
	if err := db.QueryRow(ctx, `SELECT min(at), max(at) FROM (SELECT pg_xact_commit_timestamp(xmin) AS at FROM kuberewind.deltas_data WHERE seq > $1 AND seq <= $2 AND source = 1) AS missed`,
		g.seq, last).Scan(&first, &all); err != nil {
		return nil, fmt.Errorf("when resumed events were committed: %w", err)
	}
	return measure.Values{firstEvent: first.Sub(recorder.started).Seconds(), caughtUp: all.Sub(recorder.started).Seconds()}, nil
}

// list waits until all lists are on record, and says when the last one was. Before its list is on record, no stream watches.
func (r *restart) list(ctx context.Context, recorder *subject, db *pgx.Conn, _ gone) (measure.Values, error) {
	if err := r.listed(ctx, recorder, db); err != nil {
		return nil, err
	}
	// The end of a list closes the gap that the list was for.
	var last time.Time
	if err := db.QueryRow(ctx, `SELECT max(pg_xact_commit_timestamp(xmin)) FROM kuberewind.gaps_data WHERE closed_batch IS NOT NULL`).Scan(&last); err != nil {
		return nil, fmt.Errorf("when lists were committed: %w", err)
	}
	took := last.Sub(recorder.started).Seconds()
	return measure.Values{firstEvent: took, caughtUp: took}, nil
}

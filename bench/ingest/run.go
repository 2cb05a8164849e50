package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/bench/serve"
	"github.com/kuberewind/kuberewind/checkpoint"
)

// A Bench measures on one server, and on one Set at a time.
type Bench struct {
	Server   *measure.Server
	Recorder string // path of the program
	Dir      string // for the files of runs, which they remove

	source data.Source
	set    data.Set
	events int                               // that are measured: the first ones
	held   int                               // that come after them; 0 has runs of a recorder end without sweep and checkpoint
	span   time.Duration                     // of the events that are measured, by their own clock
	beside func(context.Context, *run) error // looks on while events come, if there is one
}

// A way is a kind of program that is measured.
type way int

const (
	recorder way = iota
	byCopy
	byInsert
	watching // and nothing else
)

func (w way) String() string {
	return [...]string{"kuberewind", "SharedInformer, COPY of 500", "SharedInformer, INSERT each", "watch only"}[w]
}

// batch is how many rows those who COPY copy at once.
const batch = 500

// An Outcome is what one run gave. All but the peak of the memory is about the measured events, without the first lists and the
// held events.
type Outcome struct {
	Events    int
	Took      time.Duration // from the first event on the wire to the last commit
	Process   time.Duration // CPU time of the one under test
	Postgres  time.Duration // CPU time of PostgreSQL
	Pointing  time.Duration // of that, the share of the checkpoints that the recorder made meanwhile
	Serving   time.Duration // CPU time of the server of the Set
	Latencies []latency     // from the wire to the commit, or, of a bare watch, to the client; the shortest first
	Before    Spaces        // after the first lists
	After     Spaces
	Stored    map[string]int64 // bytes of the events' rows, compressed as they are, by type
	Peak      int64            // resident memory of the one under test, from its start on
	Live      int              // in the first lists
	Span      time.Duration    // what the events took in the cluster that they are of
	Upkeep    Upkeep
}

// Upkeep is the share of a sweep of the next day, and of one checkpoint, made from the previous one and the deltas since.
type Upkeep struct {
	Sweep, Checkpoint Spaces
	// Their CPU time, with PostgreSQL's.
	SweepCPU, CheckpointCPU time.Duration
	Swept                   int   // objects
	Merged                  int64 // deltas
}

// A run that takes longer waits for something that will not come.
const (
	leastPatience = 3 * time.Minute
	patienceEach  = 15 * time.Millisecond // for an object or an event
)

// once runs one way, on what on has named. At a rate of 0, events come as fast as they are read; only then can some be held back.
func (b *Bench) once(ctx context.Context, w way, rate float64) (out *Outcome, err error) {
	dir, err := os.MkdirTemp(b.Dir, "run-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	live, events := b.set.Len()
	patience := leastPatience + time.Duration(live+events)*patienceEach
	if rate > 0 {
		patience += time.Duration(float64(events) / rate * float64(time.Second))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s has not recorded %d objects and %d events within %s: one was lost, or the machine is too slow", w, live, events, patience))
	defer cancel()
	defer func() {
		if err != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
	}()
	options := serve.Options{Dir: dir, Rate: rate}
	if b.held > 0 {
		options.Gate = b.events
	}
	served, err := serve.Run(ctx, serve.Job{Source: b.source, Options: options})
	if err != nil {
		return nil, err
	}
	defer served.Close()
	r := &run{bench: b, way: w, served: served, dir: dir, live: live, out: &Outcome{Events: b.events, Live: live, Span: b.span}}
	if w == watching {
		return r.out, r.watch(ctx)
	}
	if r.database, err = b.Server.NewDatabase(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Server.Drop(context.WithoutCancel(ctx), r.database)) }()
	return r.out, r.record(ctx)
}

// A run is one of one way.
type run struct {
	bench    *Bench
	way      way
	served   *serve.Process
	dir      string
	database string
	live     int
	listed   int // number of the last row of the first lists: those of events come after it
	out      *Outcome
}

// start starts what is under test.
func (r *run) start(ctx context.Context) (*subject, error) {
	if r.way == recorder {
		kubeconfig := filepath.Join(r.dir, "kubeconfig")
		if err := os.WriteFile(kubeconfig, r.served.Kubeconfig, 0o600); err != nil {
			return nil, err
		}
		listen := ""
		if r.bench.beside != nil {
			listen = "127.0.0.1:0"
		}
		return newRecorder(ctx, r.bench.Recorder, kubeconfig, r.database, r.dir, listen)
	}
	job := baselineJob{Kubeconfig: r.served.Kubeconfig, Database: r.database, Marks: []int{r.live, r.live + r.out.Events}}
	if r.way == byCopy {
		job.Batch = batch
	}
	return newChild(ctx, baselineChild, job)
}

// record runs something that records.
func (r *run) record(ctx context.Context) error {
	recording, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := r.start(recording)
	if err != nil {
		return err
	}
	end := func() {
		cancel()
		s.close()
	}
	defer end()
	db, err := pgx.Connect(ctx, r.database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }() // it has only read
	if r.listed, err = s.await(ctx, db, r.live); err != nil {
		return fmt.Errorf("the first lists: %w", err)
	}
	if err := r.watched(ctx); err != nil {
		return err
	}
	if err := r.measure(ctx, s, db); err != nil {
		return err
	}
	if !r.upkept() {
		return nil
	}
	if err := r.further(ctx, s, db); err != nil {
		return fmt.Errorf("what was held back: %w", err)
	}
	end()
	return r.swept(ctx, db)
}

// upkept reports whether sweep and checkpoint are weighed.
func (r *run) upkept() bool { return r.way == recorder && r.bench.held > 0 }

// measure lets the events come that are measured, and reads what they took.
func (r *run) measure(ctx context.Context, s *subject, db *pgx.Conn) (err error) {
	if r.out.Before, err = spacesOf(ctx, db); err != nil {
		return err
	}
	before, err := r.used(ctx, s, db)
	if err != nil {
		return err
	}
	if err := r.served.Go(ctx); err != nil {
		return err
	}
	if err := r.wait(ctx, s, db); err != nil {
		return err
	}
	// Else up to 128 MB of written pages (shared_buffers) wait in memory, and a later run is charged with them. The clock has
	// stopped with the last commit.
	if _, err := db.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("write what is in memory: %w", err)
	}
	after, err := r.used(ctx, s, db)
	if err != nil {
		return err
	}
	if err := r.out.charge(before, after); err != nil {
		return err
	}
	memory, err := measure.MemoryOf(s.cmd.Process.Pid)
	if err != nil {
		return err
	}
	r.out.Peak = memory.Peak
	if r.out.After, err = spacesOf(ctx, db); err != nil {
		return err
	}
	if err := r.times(ctx, db); err != nil {
		return err
	}
	r.out.Stored, err = storedAfter(ctx, db, r.way == recorder, r.listed)
	return err
}

// wait returns when all that is measured is on record, and the observer has seen enough.
func (r *run) wait(ctx context.Context, s *subject, db *pgx.Conn) error {
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		_, err := s.await(ctx, db, r.live+r.out.Events)
		return err
	})
	if r.bench.beside != nil {
		work.Go(func() error { return r.bench.beside(ctx, r) })
	}
	return work.Wait()
}

// watched returns when all resources are.
func (r *run) watched(ctx context.Context) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		p, err := r.served.Progress(ctx)
		if err != nil || p.Watched {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("not all resources are watched: %w", ctx.Err())
		}
	}
}

// A usage is the CPU time that processes have used since they were started.
type usage struct {
	process, postgres, serving time.Duration
	pointing                   time.Duration // of PostgreSQL's, that of the session that makes a recorder's checkpoints
	session                    int           // the process of the session; 0 if it is not measured
}

func (r *run) used(ctx context.Context, s *subject, db *pgx.Conn) (u usage, err error) {
	for pid, into := range map[int]*time.Duration{s.cmd.Process.Pid: &u.process, r.bench.Server.PID: &u.postgres, r.served.PID: &u.serving} {
		if *into, err = measure.CPUOfTree(pid); err != nil {
			return u, err
		}
	}
	if !r.upkept() {
		return u, nil
	}
	err = db.QueryRow(ctx, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`, checkpoint.Session).Scan(&u.session)
	if err != nil {
		return u, fmt.Errorf("find the session that makes the recorder's checkpoints: %w", err)
	}
	u.pointing, err = measure.CPUOf(u.session)
	return u, err
}

// charge notes what was used from one time to another.
func (o *Outcome) charge(before, after usage) error {
	if after.session != before.session {
		return fmt.Errorf("the session that makes the recorder's checkpoints was process %d first, and %d at last: what both took is not known", before.session, after.session)
	}
	o.Process, o.Postgres = after.process-before.process, after.postgres-before.postgres
	o.Serving, o.Pointing = after.serving-before.serving, after.pointing-before.pointing
	return nil
}

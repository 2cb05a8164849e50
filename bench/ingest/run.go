package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/bench/serve"
	"github.com/kuberewind/kuberewind/history"
)

// A Bench measures on one Set and one server.
type Bench struct {
	Source   data.Source
	Server   *measure.Server
	Recorder string // path of the program
	Dir      string // for what runs need; they leave nothing

	set    data.Set
	span   time.Duration                     // of the Set's events, by their own clock
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

// An Outcome is what one run gave. Everything is about the events, without the first lists.
type Outcome struct {
	Events    int
	Took      time.Duration   // from the first event on the wire to the last commit
	Process   time.Duration   // CPU time of the one under test
	Postgres  time.Duration   // CPU time of PostgreSQL
	Pointing  time.Duration   // of that, what the checkpoints took that the recorder made meanwhile
	Serving   time.Duration   // CPU time of the server of the Set
	Latencies []time.Duration // from the wire to the commit, or, of a bare watch, to the client; sorted
	Before    Spaces          // after the first lists
	After     Spaces
	Stored    map[string]int64 // bytes of the events' rows, compressed as they are, by type
	Peak      int64            // resident memory of the one under test
	Live      int
	Span      time.Duration // what the events took in the cluster that they are of
	// What a sweep of the next day adds, and one checkpoint.
	Sweep, Checkpoint Spaces
	// What they take of CPU time, PostgreSQL's with it.
	SweepCPU, CheckpointCPU time.Duration
	Swept                   int // objects
}

// A run that takes longer waits for something that will not come.
const (
	leastPatience = 3 * time.Minute
	patienceEach  = 15 * time.Millisecond // for an object or an event
)

// once runs one way. At a rate of 0, events come as fast as they are read.
func (b *Bench) once(ctx context.Context, w way, rate float64, sweep bool) (out *Outcome, err error) {
	if b.set == nil {
		if b.set, err = b.Source.Open(); err != nil {
			return nil, err
		}
	}
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
	served, err := serve.Run(ctx, serve.Job{Source: b.Source, Options: serve.Options{Dir: dir, Rate: rate}})
	if err != nil {
		return nil, err
	}
	defer served.Close()
	r := &run{bench: b, way: w, served: served, dir: dir, live: live, out: &Outcome{Events: events, Live: live, Span: b.span}, sweep: sweep}
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
	out      *Outcome
	sweep    bool
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
	defer s.close()
	defer cancel()
	db, err := pgx.Connect(ctx, r.database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }() // it has only read
	if err := s.await(ctx, db, r.live); err != nil {
		return fmt.Errorf("the first lists: %w", err)
	}
	if err := r.watched(ctx); err != nil {
		return err
	}
	if r.out.Before, err = spacesOf(ctx, db); err != nil {
		return err
	}
	before, err := r.cpu(ctx, s, db)
	if err != nil {
		return err
	}
	if err := r.served.Go(ctx); err != nil {
		return err
	}
	if err := r.wait(ctx, s, db); err != nil {
		return err
	}
	after, err := r.cpu(ctx, s, db)
	if err != nil {
		return err
	}
	for i, into := range []*time.Duration{&r.out.Process, &r.out.Postgres, &r.out.Serving, &r.out.Pointing} {
		*into = after[i] - before[i]
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
	if r.out.Stored, err = storedAfter(ctx, db, r.way == recorder, r.live); err != nil {
		return err
	}
	cancel()
	<-s.ended
	if r.way == recorder && r.sweep {
		return r.swept(ctx, db)
	}
	return nil
}

// wait returns when everything is on record, and whoever looks on has seen enough.
func (r *run) wait(ctx context.Context, s *subject, db *pgx.Conn) error {
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return s.await(ctx, db, r.live+r.out.Events) })
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

// cpu is what the three have used, and, of PostgreSQL, the session that makes checkpoints.
func (r *run) cpu(ctx context.Context, s *subject, db *pgx.Conn) (used [4]time.Duration, err error) {
	for i, pid := range []int{s.cmd.Process.Pid, r.bench.Server.PID, r.served.PID} {
		if used[i], err = measure.CPUOfTree(pid); err != nil {
			return used, err
		}
	}
	if r.way == recorder && r.sweep {
		used[3], err = ofCheckpoints(ctx, db)
	}
	return used, err
}

// ofCheckpoints is what the session of a recorder that makes its checkpoints has used.
func ofCheckpoints(ctx context.Context, db *pgx.Conn) (time.Duration, error) {
	var pid int
	err := db.QueryRow(ctx, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`, history.CheckpointSession).Scan(&pid)
	if err != nil {
		return 0, fmt.Errorf("find the session that makes the recorder's checkpoints: %w", err)
	}
	return measure.CPUOf(pid)
}

// A version names an event across what was served and what is on record. Several deletions may share one.
type version struct {
	resource int
	rv       uint64
}

// times compares when events were written with when they were committed.
func (r *run) times(ctx context.Context, db *pgx.Conn) error {
	written, err := r.served.Times(ctx)
	if err != nil {
		return err
	}
	commits, err := commitsAfter(ctx, db, r.way == recorder, r.live)
	if err != nil {
		return err
	}
	if len(commits) != len(written) {
		return fmt.Errorf("%d events were written, and %d rows are there: one of the two is wrong", len(written), len(commits))
	}
	wire := make(map[version]int64, len(written))
	first := int64(0)
	for _, e := range written {
		wire[version{e.Resource, e.RV}] = e.At
		if first == 0 || e.At < first {
			first = e.At
		}
	}
	resources := r.bench.set.Resources()
	last := time.Time{}
	for _, c := range commits {
		i := slices.IndexFunc(resources, func(of data.Resource) bool { return of.Group == c.group && of.Resource == c.resource })
		at, found := wire[version{i, c.rv}]
		if !found {
			return fmt.Errorf("resource version %d of %s is on record, and was never written", c.rv, c.resource)
		}
		r.out.Latencies = append(r.out.Latencies, c.at.Sub(time.Unix(0, at)))
		if c.at.After(last) {
			last = c.at
		}
	}
	slices.Sort(r.out.Latencies)
	r.out.Took = last.Sub(time.Unix(0, first))
	return nil
}

// watch runs a client that does nothing.
func (r *run) watch(ctx context.Context) error {
	recording, cancel := context.WithCancel(ctx)
	defer cancel()
	job := bareJob{Kubeconfig: r.served.Kubeconfig, Resources: r.bench.set.Resources(), Events: make([]int, len(r.bench.set.Resources()))}
	for e, err := range r.bench.set.Events() {
		if err != nil {
			return err
		}
		job.Events[e.Resource]++
	}
	s, err := newChild(recording, bareChild, job)
	if err != nil {
		return err
	}
	defer s.close()
	defer cancel()
	var said bareSaid
	if err := s.said.Decode(&said); err != nil {
		return err
	}
	if err := r.watched(ctx); err != nil {
		return err
	}
	if err := r.served.Go(ctx); err != nil {
		return err
	}
	if err := s.said.Decode(&said); err != nil {
		return err
	}
	written, err := r.served.Times(ctx)
	if err != nil {
		return err
	}
	next := make([]int, len(job.Events))
	for _, e := range written {
		read := said.Times[e.Resource][next[e.Resource]]
		next[e.Resource]++
		r.out.Latencies = append(r.out.Latencies, time.Duration(read-e.At))
	}
	slices.Sort(r.out.Latencies)
	return nil
}

// percentile of sorted times, 0 of none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

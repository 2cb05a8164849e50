package parts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A Cluster is one whose record is to be sized.
type Cluster struct {
	Nodes    int
	Pods     int // alive at any time
	Replaced int // Pods that are made in a day
	Leaders  int // controllers that hold an election
}

// The events of every cluster, by Kubernetes' own defaults.
const (
	day = 24 * time.Hour

	renewals  = int(day / (10 * time.Second)) // of a Node's Lease: nodeLeaseDurationSeconds / 4
	reports   = int(day / (5 * time.Minute))  // of a Node at rest: nodeStatusReportFrequency
	elections = int(day / (2 * time.Second))  // of a leader's Lease: --leader-elect-retry-period
)

// Weights are sizes on disk in a record of generated data: rows with what is stored beside them, and their part of the indexes.
type Weights struct {
	Lease, Node float64 // bytes of a delta of one
	PodDeltas   float64 // of everything but Leases and Nodes, for each Pod that is made
	PodBytes    float64 // of those
	Keyframe    float64 // bytes of a live object, stored whole once a day
	LivePerPod  float64 // objects that live for each Pod that does
	Checkpoint  float64 // bytes of a live object in one
	Busy        Load    // of a delta, in transactions of so many as a recorder puts into one when much waits
	Idle        Load    // of a delta that comes alone, and has a transaction of its own
	Live        int     // objects of the data
	Events      int
}

// A Load is what a delta takes of PostgreSQL while it is written.
type Load struct {
	CPU float64 // microseconds
	Log float64 // bytes of the write-ahead log
}

// A Weighing says what is weighed, and how.
type Weighing struct {
	Dir          string // where the database is put for a while; the system's temporary folder, if empty
	Seed         uint64
	Live, Events int
	Times        int  // how often the CPU time of a delta is measured: the median counts
	NoSync       bool // has PostgreSQL not wait for its disk: for tests, whose figures are not published
}

// alone is how many deltas are written in transactions of their own. It is large enough to measure their CPU time in hundredths
// of a second.
const alone = 1000

// Weigh records generated data and weighs it.
func Weigh(ctx context.Context, of Weighing) (w Weights, err error) {
	set, err := data.Generate(data.Settings{Seed: of.Seed, Live: of.Live, Events: of.Events + alone})
	if err != nil {
		return w, err
	}
	// The size of rows does not depend on when they reach the disk. The size of the log does, and waiting is work too.
	return w, measure.OnServer(ctx, measure.ServerOptions{Dir: of.Dir, Durable: !of.NoSync}, func(server *measure.Server) error {
		var busy, idle []Load
		for range of.Times {
			if err := w.weigh(ctx, server, set, of.Events); err != nil {
				return err
			}
			busy, idle = append(busy, w.Busy), append(idle, w.Idle)
		}
		w.Busy, w.Idle = median(busy), median(idle)
		return nil
	})
}

// median is by CPU time.
func median(loads []Load) Load {
	slices.SortFunc(loads, func(a, b Load) int { return cmp.Compare(a.CPU, b.CPU) })
	return loads[len(loads)/2]
}

// weigh records the data once, and weighs it.
func (w *Weights) weigh(ctx context.Context, server *measure.Server, set data.Set, events int) error {
	database, err := server.NewRecord(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	rows, err := prepare(set, events+alone, now)
	if err != nil {
		return err
	}
	sink, err := openSink(ctx, database, rows.resources, now)
	if err != nil {
		return err
	}
	defer sink.Close()
	if err := rows.list(ctx, sink, now); err != nil {
		return err
	}
	if w.Busy, err = load(ctx, server, database, sink, rows.events[:events], batchRows); err != nil {
		return err
	}
	w.Live, w.Events = len(rows.first), events
	if w.Checkpoint, err = point(ctx, database, sink.Info().Cluster, now); err != nil {
		return err
	}
	if err := on(ctx, database, func(db *pgx.Conn) error { return w.read(ctx, db) }); err != nil {
		return err
	}
	w.Idle, err = load(ctx, server, database, sink, rows.events[events:], 1)
	return err
}

// load writes deltas, so many in a transaction, and says what each took of PostgreSQL until it was on disk.
func load(ctx context.Context, server *measure.Server, database string, sink *postgres.Sink, items []postgres.Item, together int) (l Load, err error) {
	var c cost
	wal, err := logged(ctx, database, func() (err error) {
		c, err = costOf(server, func() error {
			if err := writeBy(ctx, sink, items, together); err != nil {
				return err
			}
			return on(ctx, database, func(db *pgx.Conn) error {
				_, err := db.Exec(ctx, "CHECKPOINT")
				return err
			})
		})
		return err
	})
	n := float64(len(items))
	return Load{CPU: each(c.server, n), Log: wal / n}, err
}

// point makes a checkpoint, and gives its bytes for each live object.
func point(ctx context.Context, database string, cluster int32, now time.Time) (float64, error) {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	maker := checkpoint.NewMaker(pool, cluster, history.Of(pool, history.Cluster{Number: cluster, Name: clusterName}).Source(), checkpoint.Options{Busy: 1, Now: func() time.Time { return now }})
	made, err := maker.MakeOne(ctx)
	if err != nil {
		return 0, err
	}
	return float64(made.Bytes) / float64(made.Objects), nil
}

// weigh shares out the size of the tables in proportion to what the rows hold. A row has 72 bytes of header, pointer and fixed
// columns, and the others as they are stored, compressed.
const weigh = `
	WITH size AS (
		SELECT sum(pg_total_relation_size(oid)) AS bytes FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace AND relkind = 'r' AND relname ~ '^(deltas_|lives|ends|living|batches)'
	), row AS (
		SELECT s.resource, d.seq <= $1 AS first, d.type, 72 + pg_column_size(rv) + pg_column_size(d.version) + pg_column_size(digest) + coalesce(pg_column_size(manager), 0) +
			coalesce(pg_column_size(subresource), 0) + coalesce(pg_column_size(patch), 0) + coalesce(pg_column_size(object), 0) + coalesce(pg_column_size(exact), 0) AS bytes
		FROM kuberewind.deltas_data AS d JOIN kuberewind.streams AS s USING (cluster, stream)
	), scale AS (SELECT size.bytes / (SELECT sum(bytes) FROM row) AS factor FROM size)
	SELECT
		(avg(bytes) FILTER (WHERE NOT first AND resource = 'leases') * factor)::float8,
		(avg(bytes) FILTER (WHERE NOT first AND resource = 'nodes') * factor)::float8,
		count(*) FILTER (WHERE NOT first AND resource NOT IN ('leases', 'nodes'))::float8 / made,
		(sum(bytes) FILTER (WHERE NOT first AND resource NOT IN ('leases', 'nodes')) * factor)::float8 / made,
		(avg(bytes) FILTER (WHERE first) * factor)::float8,
		count(*) FILTER (WHERE first)::float8 / count(*) FILTER (WHERE first AND resource = 'pods')
	FROM row, scale, (SELECT nullif(count(*), 0)::float8 AS made FROM row WHERE NOT first AND resource = 'pods' AND type = 1) AS pods
	GROUP BY factor, made`

func (w *Weights) read(ctx context.Context, db *pgx.Conn) error {
	err := db.QueryRow(ctx, weigh, w.Live).Scan(&w.Lease, &w.Node, &w.PodDeltas, &w.PodBytes, &w.Keyframe, &w.LivePerPod)
	var none pgx.ScanArgError
	if errors.As(err, &none) {
		return fmt.Errorf("so few events have no Pod that was made, or no Node that reported; take more: %w", err)
	}
	return err
}

// Table writes what a day of a cluster takes.
func (w *Weights) Table(out io.Writer, c Cluster) error {
	live := w.LivePerPod * float64(c.Pods)
	type line struct {
		what   string
		deltas float64 // a day
		bytes  float64 // of one
	}
	lines := []line{
		{fmt.Sprintf("Leases of Nodes: %s × %s", whole(c.Nodes), whole(renewals)), float64(c.Nodes * renewals), w.Lease},
		{fmt.Sprintf("Nodes that report: %s × %s", whole(c.Nodes), whole(reports)), float64(c.Nodes * reports), w.Node},
		{fmt.Sprintf("Leases of leaders: %s × %s", whole(c.Leaders), whole(elections)), float64(c.Leaders * elections), w.Lease},
		{fmt.Sprintf("Pods made, and what comes with them: %s × %s", whole(c.Replaced), measure.Number(w.PodDeltas)), float64(c.Replaced) * w.PodDeltas, w.PodBytes / w.PodDeltas},
		{fmt.Sprintf("every live object once a day: %s × %s", whole(c.Pods), measure.Number(w.LivePerPod)), live, w.Keyframe},
	}
	total := 0.0
	for _, l := range lines {
		total += l.deltas
	}
	interval := checkpoint.Interval(int64(live))
	points := line{what: fmt.Sprintf("checkpoints, one every %s deltas: %s each", whole(int(interval)), whole(int(live))), bytes: w.Checkpoint}
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "in a day\tdeltas\tbytes of one\tGB\t")
	bytes := total / float64(interval) * live * points.bytes
	for _, l := range lines {
		fmt.Fprintf(t, "%s\t%s\t%s\t%.3f\t\n", l.what, measure.Number(l.deltas), measure.Number(l.bytes), l.deltas*l.bytes/1e9)
		bytes += l.deltas * l.bytes
	}
	fmt.Fprintf(t, "%s\t\t%s\t%.3f\t\n", points.what, measure.Number(points.bytes), total/float64(interval)*live*points.bytes/1e9)
	fmt.Fprintf(t, "all\t%s\t%s\t%.3f\t\n", measure.Number(total), measure.Number(bytes/total), bytes/1e9)
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "\n%s deltas a second on average; %s GB in 30 days, %s GB in a year.\n",
		measure.Number(total/day.Seconds()), measure.Number(30*bytes/1e9), measure.Number(365*bytes/1e9)); err != nil {
		return err
	}
	return w.server(out, total/day.Seconds())
}

// server writes what so many deltas a second take of PostgreSQL, and how many it takes.
func (w *Weights) server(out io.Writer, rate float64) error {
	say := func(how string, l Load) error {
		_, err := fmt.Fprintf(out, "PostgreSQL, %s: %s µs of CPU a delta, %s kB of log: %s deltas a second are %s of a core and %s kB/s of log.\n",
			how, measure.Number(l.CPU), measure.Number(l.Log/1e3), measure.Number(rate), measure.Number(rate*l.CPU/1e6), measure.Number(rate*l.Log/1e3))
		return err
	}
	fmt.Fprintln(out)
	if err := say(fmt.Sprintf("%s deltas in a transaction, as when much waits", whole(batchRows)), w.Busy); err != nil {
		return err
	}
	if err := say("one in a transaction, as when they come one by one", w.Idle); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "One core of PostgreSQL is half busy with %s deltas a second of all its clusters when they come one by one, and with %s when much waits; checkpoints and sweeps come on top.\n",
		measure.Number(0.5e6/w.Idle.CPU), measure.Number(0.5e6/w.Busy.CPU))
	return err
}

func whole(n int) string { return measure.Number(float64(n)) }

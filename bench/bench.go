package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/migrations"
)

// Settings say how large the records are.
type Settings struct {
	Deltas   []int64 // of the smaller record, and of those that continue it
	Live     int     // to a tenth; as many as there are, once the records are made
	Interval int64   // deltas between two checkpoints; 0 means the recorder's default, which is then put here
}

func (s *Settings) validate() error {
	switch {
	case len(s.Deltas) < 2 || !slices.IsSorted(s.Deltas):
		return errors.New("the deltas of records have to be two numbers or more, each larger than the one before")
	case s.Deltas[0] < 2*int64(s.Live):
		return errors.New("there have to be at least twice as many deltas as live objects: the first list makes one of each")
	}
	return nil
}

// days is how many days the smallest record lasts.
const days = 3

// A bench makes the records and measures them.
type bench struct {
	Settings
	*measure.Run
	url        string // of the database that the records are made in
	postmaster int    // the server's process, whose CPU time counts
	peak       func(ctx context.Context, url string, seq int64) (int64, error)

	fleet   *fleet
	random  *rand.Rand
	records []*record                // smaller first
	answers map[answerOf]fingerprint // that all ways have to give
}

// A record is one of a size, in a database of its own.
type record struct {
	deltas  int64
	name    string // of the database
	url     string
	pool    *pgxpool.Pool
	history *history.Record
}

func (r *record) String() string { return thousands(r.deltas) + " deltas" }

// rebuilds measures what reading the record costs: it makes synthetic records of two sizes, the smaller the beginning of the larger, and rebuilds
// the cluster of each at random instants — with checkpoints, without, and from a plain table of full rows, whose answers have to be equal. The records
// are written as the recorder writes them, with its checkpoints. The server waits for no disk, which only writing would feel; nothing is
// read from a cold one.
func rebuilds(ctx context.Context, run *measure.Run) error {
	settings := map[string]Settings{
		quick: {Deltas: []int64{10_000, 100_000}, Live: 1000}, middle: {Deltas: []int64{60_000, 300_000}, Live: 20_000}, full: {Deltas: []int64{300_000, 3_000_000}, Live: 20_000},
	}[strings.Replace(run.Report.Size, largest, full, 1)]
	return run.OnServer(ctx, measure.ServerOptions{}, func(server *measure.Server) error {
		b := &bench{Settings: settings, Run: run, url: server.URL, postmaster: server.PID, peak: peakOfChild}
		return b.run(ctx)
	})
}

// run makes everything, measures, and drops the copies that it made. The report is as far as it came.
func (b *bench) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	return b.measure(ctx)
}

// prepare makes the records, and opens them. The caller calls close, also after an error.
func (b *bench) prepare(ctx context.Context) (err error) {
	if err := b.validate(); err != nil {
		return err
	}
	b.answers = make(map[answerOf]fingerprint)
	b.random = rand.New(rand.NewPCG(15, 9))
	last := b.Deltas[len(b.Deltas)-1]
	if b.fleet, err = newFleet(b.Report.Seed, b.Live, last, int(b.Deltas[0]/days)); err != nil {
		return err
	}
	defer b.fleet.stop()
	b.Live = int(b.fleet.live)
	if b.Interval == 0 {
		b.Interval = history.CheckpointInterval(int64(b.Live))
	}
	if err := b.make(ctx); err != nil {
		return err
	}
	return b.open(ctx)
}

func migrate(ctx context.Context, databaseURL string) error {
	if err := migrations.Up(ctx, databaseURL, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	_, err = migrations.Roles(ctx, conn)
	return errors.Join(err, conn.Close(ctx))
}

// make records what the fleet does. Where a smaller record ends, its database is copied, so that all sizes can be measured in turn.
func (b *bench) make(ctx context.Context) error {
	if err := migrate(ctx, b.url); err != nil {
		return err
	}
	w, err := newWriter(ctx, b.url, b.fleet)
	if err != nil {
		return err
	}
	defer w.close()
	c := b.newCheckpoints(w)
	told := int64(0)
	w.cut, w.after = c.cut, func(ctx context.Context, seq int64) error {
		if tenth := seq / max(b.Deltas[len(b.Deltas)-1]/10, 1); tenth > told {
			told = tenth
			b.Say("%s deltas recorded", thousands(seq))
		}
		return c.after(ctx, seq)
	}
	for i, deltas := range b.Deltas {
		if err := w.record(ctx, deltas); err != nil {
			return err
		}
		if i == 0 {
			if err := c.settle(ctx); err != nil {
				return err
			}
		}
		r := &record{deltas: deltas, url: b.url}
		if i < len(b.Deltas)-1 {
			w.idle()
			if r.name, r.url, err = copyDatabase(ctx, b.url, deltas); err != nil {
				return err
			}
		}
		b.records = append(b.records, r)
	}
	return nil
}

// copyDatabase copies a database to which nobody is connected.
func copyDatabase(ctx context.Context, source string, deltas int64) (name, address string, err error) {
	from, err := url.Parse(source)
	if err != nil {
		return "", "", err
	}
	of := strings.TrimPrefix(from.Path, "/")
	name = fmt.Sprintf("%s_%d", of, deltas)
	from.Path = "/" + name
	return name, from.String(), maintain(ctx, source, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy",
		pgx.Identifier{name}.Sanitize(), pgx.Identifier{of}.Sanitize()))
}

// maintain runs a statement that cannot be run in the database itself.
func maintain(ctx context.Context, address, statement string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	u.Path = "/postgres"
	conn, err := pgx.Connect(ctx, u.String())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

func (b *bench) open(ctx context.Context) error {
	for _, r := range b.records {
		var err error
		if r.pool, err = pgxpool.New(ctx, r.url); err != nil {
			return err
		}
		if _, err := r.pool.Exec(ctx, `VACUUM (ANALYZE)`); err != nil {
			return err
		}
		if r.history, err = history.Open(ctx, r.url, history.Options{}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) close() error {
	var errs []error
	for _, r := range b.records {
		if r.history != nil {
			r.history.Close()
		}
		if r.pool != nil {
			r.pool.Close()
		}
		if r.name != "" {
			// The context may have ended; what is left would take its space for good.
			errs = append(errs, maintain(context.Background(), r.url, "DROP DATABASE "+pgx.Identifier{r.name}.Sanitize()+" WITH (FORCE)"))
		}
	}
	return errors.Join(errs...)
}

// instants gives the places of n rounds in a record, one in each of n equal parts of it, the same in each record. A round that warms up is in the middle.
func (b *bench) instants(n int) (at func(round int) float64) {
	var places []float64
	for i := range n {
		places = append(places, (float64(i)+b.random.Float64())/float64(n))
	}
	b.random.Shuffle(n, func(i, j int) { places[i], places[j] = places[j], places[i] })
	return func(round int) float64 {
		if round < 0 {
			return 0.5
		}
		return places[round]
	}
}

func (b *bench) seqAt(r *record, place float64) int64 {
	first := int64(b.Live) + 1
	return first + int64(place*float64(r.deltas-first))
}

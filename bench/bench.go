package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/migrations"
)

// Settings say how large the records are.
type Settings struct {
	Deltas   []int64 `json:"deltas"` // of the smaller record, and of those that continue it
	Live     int     `json:"live"`
	Versions int64   `json:"versions"` // of one object in the largest record
	Interval int64   `json:"interval"` // deltas between two checkpoints; 0 means the recorder's default, which is then put here
	Instants int     `json:"instants"` // at which the slow ways are measured; the rebuild is at three times as many
}

func (s *Settings) validate() error {
	switch {
	case len(s.Deltas) < 2 || !slices.IsSorted(s.Deltas):
		return errors.New("-deltas needs two numbers or more, each larger than the one before")
	case s.Live < 20:
		return errors.New("-live needs at least 20")
	case s.Deltas[0] < 2*int64(s.Live):
		return errors.New("-deltas needs at least twice as many deltas as there are live objects: the first list makes one of each")
	case s.Instants < 1 || s.Versions < 2:
		return errors.New("-instants needs at least 1, -versions at least 2")
	}
	return nil
}

// days is how many days the smallest record lasts.
const days = 3

// A bench makes the records and measures them.
type bench struct {
	Settings
	url        string // of the database that the records are made in
	log        io.Writer
	postmaster int                                                             // the server's process, whose CPU time counts; 0 if it is unknown
	peak       func(ctx context.Context, url string, seq int64) (int64, error) // peak memory of a process that rebuilds; nil means not asked

	fleet   *fleet
	random  *rand.Rand
	records []*record // smaller first
	report  Report
}

// A record is one of a size, in a database of its own.
type record struct {
	deltas  int64
	name    string // of the database
	url     string
	pool    *pgxpool.Pool
	history *history.Record
	result  *RecordResult
}

// run makes everything, measures, and drops the copies that it made. The report is as far as it came.
func (b *bench) run(ctx context.Context) (err error) {
	if err := b.validate(); err != nil {
		return err
	}
	b.random = rand.New(rand.NewPCG(15, 9))
	last := b.Deltas[len(b.Deltas)-1]
	if b.fleet, err = newFleet(b.Live, last, b.Versions, int(b.Deltas[0]/days)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if b.Interval == 0 {
		b.Interval = history.CheckpointInterval(int64(b.Live))
	}
	if err := b.make(ctx); err != nil {
		return err
	}
	return b.measure(ctx)
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.log, "bench: "+format+"\n", args...) }

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
			b.say("%s deltas recorded", thousands(seq))
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
	b.report.WritingSeconds = w.writing.Seconds()
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
		r.result = &RecordResult{Deltas: r.deltas}
		b.report.Records = append(b.report.Records, r.result)
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

// instants gives seqs all over a record, one in each of n equal parts of it, at the same places in each record.
func (b *bench) instants(n int) (places []float64) {
	for i := range n {
		places = append(places, (float64(i)+b.random.Float64())/float64(n))
	}
	b.random.Shuffle(n, func(i, j int) { places[i], places[j] = places[j], places[i] })
	return places
}

func (b *bench) seqAt(r *record, place float64) int64 {
	first := int64(b.Live) + 1
	return first + int64(place*float64(r.deltas-first))
}

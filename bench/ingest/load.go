package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
)

// The readings of a recorder under load.
const (
	resident    = "resident"
	heapUsed    = "heap"
	heapGoal    = "heap at the next collection"
	descriptors = "file descriptors"
	goroutines  = "goroutines"
	waits       = "deltas that wait"
	updated     = "heads, streams, living"
	dead        = "dead rows"
	eachDelta   = "disk"
	halfLasts   = "p50 from wire to commit"
	mostLast    = "p99 from wire to commit"
)

// metrics are the recorder's metrics that are read, and the divisors of their units. The heap grows until garbage is collected,
// and shrinks again. The size at which the next collection is due is about twice what was alive at the last (GOGC). That size
// must not grow.
var metrics = map[string]struct {
	name string
	by   float64
}{
	resident: {"process_resident_memory_bytes", 1 << 20}, heapUsed: {"go_memstats_heap_inuse_bytes", 1 << 20}, heapGoal: {"go_memstats_next_gc_bytes", 1 << 20},
	descriptors: {"process_open_fds", 1}, goroutines: {"go_goroutines", 1}, waits: {"kuberewind_queue_entries", 1},
}

const (
	quarters = 4
	looks    = 15 // in each quarter
	flat     = 1.1
)

// Load keeps a recorder under load for as long as is asked. It looks at the recorder and its tables at even distances: a
// recorder's size must not grow with time. In the first quarter it comes to rest; the last must be as the second.
func Load(ctx context.Context, run *measure.Run, sizes Sizes) error {
	return onBench(ctx, run, func(b *Bench) error { return b.load(ctx, run, sizes.RateLive) })
}

func (b *Bench) load(ctx context.Context, run *measure.Run, live int) error {
	events := int(run.LoadRate * run.LoadFor.Seconds())
	on, err := b.on(data.Source{Settings: data.Settings{Seed: run.Report.Seed, Live: live, Events: events}}, nil)
	if err != nil {
		return err
	}
	e := measure.Experiment{
		Name: "load", Title: fmt.Sprintf("A recorder under load for %s, %s events a second", run.LoadFor, measure.Number(run.LoadRate)),
		Data: fmt.Sprintf("%s; looked at %d times", on, quarters*looks),
		Quantities: []measure.Quantity{
			{Name: resident, Unit: "MiB"}, {Name: heapGoal, Unit: "MiB"}, {Name: heapUsed, Unit: "MiB"}, {Name: descriptors, Unit: "open"}, {Name: goroutines, Unit: "running"}, {Name: waits, Unit: "in memory"},
			{Name: updated, Unit: "KiB"}, {Name: dead, Unit: "% of all"}, {Name: eachDelta, Unit: bytesEach},
			{Name: halfLasts, Unit: "ms"}, {Name: mostLast, Unit: "ms"},
		},
	}
	l := &load{every: run.LoadFor / (quarters * looks)}
	for i := range quarters {
		l.quarters = append(l.quarters, &measure.Measured{Name: fmt.Sprintf("quarter %d", i+1)})
	}
	for _, quantity := range []string{resident, heapGoal, descriptors, goroutines, updated} {
		e.Compare = append(e.Compare, measure.Comparison{
			Number: "12", What: quantity + ", the last quarter to the second", Quantity: quantity, Of: l.quarters[quarters-1].Name, To: l.quarters[1].Name, AtMost: flat,
		})
	}
	b.beside = l.look
	return run.DoOnce(ctx, e, func(ctx context.Context) ([]*measure.Measured, error) {
		out, err := b.once(ctx, recorder, run.LoadRate)
		if err != nil {
			return nil, err
		}
		l.time(out.Latencies)
		return l.quarters, nil
	})
}

// A load is what was seen of a recorder.
type load struct {
	every    time.Duration
	quarters []*measure.Measured
}

// look looks at a recorder while it runs.
func (l *load) look(ctx context.Context, r *run) (err error) {
	address, err := addressIn(filepath.Join(r.dir, logName))
	if err != nil {
		return err
	}
	db, err := pgx.Connect(ctx, r.database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	ticker := time.NewTicker(l.every)
	defer ticker.Stop()
	for i := range quarters * looks {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		values, err := scrape(ctx, address)
		if err != nil {
			return err
		}
		if err := tables(ctx, db, values); err != nil {
			return err
		}
		l.quarters[i/looks].Add(values)
	}
	return nil
}

// time adds the times of the events of each quarter, by when they were written. It includes all, also those during a
// checkpoint or a vacuum.
func (l *load) time(sorted []latency) {
	first := slices.MinFunc(sorted, func(a, b latency) int { return cmp.Compare(a.written, b.written) }).written
	var of [quarters][]latency
	for _, t := range sorted {
		i := min(int((t.written-first)/int64(looks*l.every)), quarters-1)
		of[i] = append(of[i], t)
	}
	for i, quarter := range l.quarters {
		quarter.Add(measure.Values{halfLasts: millis(of[i], 0.5), mostLast: millis(of[i], 0.99)})
	}
}

// tables looks at the record. The number of rows of heads and streams is constant, and each commit updates them. Rows of living
// come and go, and their number hardly changes.
func tables(ctx context.Context, db *pgx.Conn, into measure.Values) error {
	var size, share, each float64
	err := db.QueryRow(ctx, `
		SELECT (pg_total_relation_size('kuberewind.heads') + pg_total_relation_size('kuberewind.streams') + pg_total_relation_size('kuberewind.living'))::float8 / 1024,
			coalesce((SELECT 100.0 * sum(n_dead_tup) / nullif(sum(n_live_tup) + sum(n_dead_tup), 0) FROM pg_stat_user_tables
				WHERE schemaname = 'kuberewind' AND relname IN ('heads', 'streams', 'living')), 0)::float8,
			(SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'kuberewind'::regnamespace)::float8 / (SELECT sum(seq) FROM kuberewind.heads)`).
		Scan(&size, &share, &each)
	into[updated], into[dead], into[eachDelta] = size, share, each
	return err
}

// addressIn finds in a recorder's log where it serves its metrics.
func addressIn(log string) (string, error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(text) {
		var said struct{ Msg, Address string }
		if json.Unmarshal(line, &said) == nil && bytes.HasPrefix([]byte(said.Msg), []byte("serving ")) {
			return said.Address, nil
		}
	}
	return "", fmt.Errorf("%s does not say where the recorder serves its metrics", log)
}

// scrape asks a recorder for its metrics.
func scrape(ctx context.Context, address string) (measure.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	values := make(measure.Values)
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		for quantity, m := range metrics {
			if m.name != string(name) {
				continue
			}
			v, err := strconv.ParseFloat(string(value), 64)
			if err != nil {
				return nil, fmt.Errorf("metric %s: %w", name, err)
			}
			values[quantity] = v / m.by
		}
	}
	if len(values) != len(metrics) {
		return nil, fmt.Errorf("of %d metrics, the recorder serves %d", len(metrics), len(values))
	}
	return values, nil
}

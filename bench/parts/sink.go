package parts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
)

// Sink measures the sink alone against psql's \copy of the rows that the sink has written. Both write into the same tables with
// the same indexes, after the same first lists. In that time the sink moves the head and positions as well, in transactions of
// 2,000 rows at most.
//
// The sink runs in two ways. In one its rows are encoded before. In the other it encodes them meanwhile, as the recorder does:
// it makes patches, checks them and digests them.
func Sink(ctx context.Context, run *measure.Run, sizes Sizes) error {
	sources := []data.Source{{Settings: data.Settings{Seed: run.Report.Seed, Live: sizes.Live, Events: sizes.Rows}}}
	if run.Recording != "" {
		sources = append(sources, data.Source{Path: run.Recording})
	}
	return run.OnServer(ctx, measure.ServerOptions{Durable: !sizes.NoSync}, func(server *measure.Server) error {
		for _, source := range sources {
			if err := sinkOn(ctx, run, server, sizes, source); err != nil {
				return err
			}
		}
		return nil
	})
}

func sinkOn(ctx context.Context, run *measure.Run, server *measure.Server, sizes Sizes, source data.Source) error {
	name, err := source.Name()
	if err != nil {
		return err
	}
	set, err := source.Open()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(run.Dir, "kuberewind-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &sinkRun{server: server, source: name, dir: dir, now: time.Now()}
	if s.rows, err = prepare(set, sizes.Rows, s.now); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	return run.Do(ctx, s.experiment())
}

// A sinkRun compares ways to write the same rows.
type sinkRun struct {
	server *measure.Server
	source string // of the data, by its name
	dir    string // of the files to copy from
	now    time.Time
	rows   *written
	begun  string // a database with the first lists on record, from which every run starts
	total  int64  // rows that a run has to commit
}

// begin makes the database to start from, and the files to copy from of what a sink makes of it.
func (s *sinkRun) begin(ctx context.Context) error {
	var err error
	if s.begun, err = s.server.NewRecord(ctx); err != nil {
		return err
	}
	if err := s.rows.listInto(ctx, s.begun, clusterName, s.now); err != nil {
		return err
	}
	database, err := s.server.Copy(ctx, s.begun)
	if err != nil {
		return err
	}
	if _, err := s.sink(ctx, database, false); err != nil {
		return err
	}
	if s.total, err = rowsIn(ctx, database); err != nil {
		return err
	}
	for _, t := range inserted {
		for _, format := range []string{"binary", "text"} {
			if _, err := s.psql(ctx, database, fmt.Sprintf(`\copy (SELECT * FROM kuberewind.%[1]s WHERE %[2]s > %[3]d ORDER BY %[2]s) TO '%[4]s' (FORMAT %[5]s)`,
				t.name, t.after, len(s.rows.first), s.file(t.name, format), format)); err != nil {
				return err
			}
		}
	}
	return s.server.Drop(ctx, database)
}

// inserted are the tables that a sink inserts into, the deltas first. Each has the column that identifies the rows of the events
// from those of the first lists.
var inserted = []struct{ name, after string }{
	{"deltas_data", "seq"}, {"lives", "object_id"}, {"ends", "seq"}, {"living", "object_id"}, {"batches", "last_seq"},
}

func (s *sinkRun) file(table, format string) string { return filepath.Join(s.dir, table+"."+format) }

func rowsIn(ctx context.Context, database string) (n int64, err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, `SELECT count(*) FROM kuberewind.deltas_data`).Scan(&n)
	return n, errors.Join(err, conn.Close(ctx))
}

const (
	sinkRows   = "rows"
	sinkCPU    = "CPU of the client"
	serverCPU  = "CPU of PostgreSQL"
	sinkWay    = "sink, encoded before"
	encodeWay  = "sink, encoding meanwhile"
	copyBinary = `psql \copy, binary`
	copyText   = `psql \copy, text`
	copyDeltas = `psql \copy, binary, of deltas only`
)

func (s *sinkRun) experiment() measure.Experiment {
	e := measure.Experiment{
		Name: "sink-" + s.source, Title: `The sink alone, against psql's \copy of the same rows`,
		Data:       fmt.Sprintf("%s: %s deltas of %s live objects", s.source, measure.Number(float64(len(s.rows.events))), measure.Number(float64(len(s.rows.first)))),
		Quantities: []measure.Quantity{{Name: sinkRows, Unit: "rows/s"}, {Name: sinkCPU, Unit: "µs a row"}, {Name: serverCPU, Unit: "µs a row"}},
		WarmUp:     true,
		Ways: []measure.Way{
			s.way(sinkWay, func(ctx context.Context, database string) (cost, error) { return s.sink(ctx, database, true) }),
			s.way(encodeWay, func(ctx context.Context, database string) (cost, error) { return s.sink(ctx, database, false) }),
			s.way(copyBinary, func(ctx context.Context, database string) (cost, error) {
				return s.copy(ctx, database, "binary", len(inserted))
			}),
			s.way(copyText, func(ctx context.Context, database string) (cost, error) {
				return s.copy(ctx, database, "text", len(inserted))
			}),
			s.way(copyDeltas, func(ctx context.Context, database string) (cost, error) { return s.copy(ctx, database, "binary", 1) }),
		},
	}
	for _, to := range []string{copyBinary, copyText} {
		e.Compare = append(e.Compare,
			measure.Comparison{Number: "2", What: "rows/s, to " + to, Quantity: sinkRows, Of: sinkWay, To: to, AtLeast: 0.8, Aim: 1},
			measure.Comparison{Number: "2", What: "rows/s encoding meanwhile, to " + to, Quantity: sinkRows, Of: encodeWay, To: to})
	}
	e.Compare = append(e.Compare, measure.Comparison{Number: "2", What: "rows/s, to " + copyDeltas, Quantity: sinkRows, Of: sinkWay, To: copyDeltas})
	return e
}

func (s *sinkRun) way(name string, do func(ctx context.Context, database string) (cost, error)) measure.Way {
	return measure.Way{Name: name, Run: func(ctx context.Context, _ int) (measure.Values, error) {
		database, err := s.server.Copy(ctx, s.begun)
		if err != nil {
			return nil, err
		}
		took, err := do(ctx, database)
		if err != nil {
			return nil, err
		}
		switch n, err := rowsIn(ctx, database); {
		case err != nil:
			return nil, err
		case n != s.total:
			return nil, fmt.Errorf("there are %d rows, and must be %d", n, s.total)
		}
		rows := float64(s.total - int64(len(s.rows.first)))
		return measure.Values{
			sinkRows: rows / took.clock.Seconds(), sinkCPU: each(took.client, rows), serverCPU: each(took.server, rows),
		}, s.server.Drop(ctx, database)
	}}
}

// sink writes the rows as the recorder does, or rows that are encoded already. To open the sink, which has PostgreSQL fold all that lives, does not count.
func (s *sinkRun) sink(ctx context.Context, database string, encoded bool) (c cost, err error) {
	sink, err := openSink(ctx, database, s.rows.resources, s.now)
	if err != nil {
		return c, err
	}
	defer sink.Close()
	do := func() error { return write(ctx, sink, s.rows.events) }
	if encoded {
		if do, err = encode(ctx, sink, s.rows.events); err != nil {
			return c, err
		}
		runtime.GC() // the garbage of encoding is not charged
	}
	return costOf(s.server, do)
}

// copy has psql write the rows of the first so many tables, as they are in the end, in one transaction.
func (s *sinkRun) copy(ctx context.Context, database, format string, tables int) (cost, error) {
	commands := []string{"BEGIN;"}
	for _, t := range inserted[:tables] {
		commands = append(commands, fmt.Sprintf(`\copy kuberewind.%s FROM '%s' (FORMAT %s)`, t.name, s.file(t.name, format), format))
	}
	return s.psql(ctx, database, append(commands, "COMMIT;")...)
}

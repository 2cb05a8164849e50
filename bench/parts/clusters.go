package parts

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A shared is one server, into which sinks of several clusters write rows that they have encoded before. The server is the
// limit. Its own CPU time shows the cost of a row, whatever else runs on the machine's cores.
type shared struct {
	server   *measure.Server
	clusters []string // by name
	now      time.Time
	rows     *written // of each
	begun    string   // a database with the first lists of all on record, from which every run starts
}

// dearer is how much more a row may cost when many clusters write, which is the limit of a step of growth. An exponent would
// show less. It is 1 for linear growth, and may exceed that by the noise only. But CPU time grows some per cent as soon as no
// core is idle, because two cores of a machine may share one.
const dearer = 1.25

const (
	allCPU    = "CPU of PostgreSQL, all"
	sinksCPU  = "CPU of the sinks"
	walLogged = "WAL"
)

// sharedBy measures what a server takes as more clusters write into it.
func sharedBy(ctx context.Context, run *measure.Run, server *measure.Server, sizes Sizes) error {
	set, err := data.Generate(data.Settings{Seed: run.Report.Seed, Live: sizes.SharedLive, Events: sizes.SharedRows})
	if err != nil {
		return err
	}
	s := &shared{server: server, now: time.Now()}
	for i := range slices.Max(sizes.Sharing) {
		s.clusters = append(s.clusters, fmt.Sprintf("cluster-%d", i+1))
	}
	if s.rows, err = prepare(set, sizes.SharedRows, s.now); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	return run.Do(ctx, s.experiment(sizes.Sharing))
}

// begin makes the database to start from.
func (s *shared) begin(ctx context.Context) (err error) {
	if s.begun, err = s.server.NewRecord(ctx); err != nil {
		return err
	}
	for _, cluster := range s.clusters {
		if err := s.rows.listInto(ctx, s.begun, cluster, s.now); err != nil {
			return err
		}
	}
	return nil
}

func (s *shared) experiment(sizes []int) measure.Experiment {
	e := measure.Experiment{
		Name: "growth-clusters", Title: "Cost for PostgreSQL, over clusters that write into it at once",
		Data: fmt.Sprintf("generated: %s deltas of %s live objects in each cluster, encoded before; the first lists of %d clusters are on record in each run",
			measure.Number(float64(len(s.rows.events))), measure.Number(float64(len(s.rows.first))), len(s.clusters)),
		Quantities: []measure.Quantity{
			{Name: allCPU, Unit: "s"}, {Name: serverCPU, Unit: "µs a row"}, {Name: sinksCPU, Unit: "µs a row"}, {Name: walLogged, Unit: "bytes a row"}, {Name: sinkRows, Unit: "rows/s, of all"},
		},
	}
	one, all := measure.Number(float64(sizes[0])), measure.Number(float64(sizes[len(sizes)-1]))
	e.Compare = []measure.Comparison{
		{Number: "11", What: fmt.Sprintf("CPU of PostgreSQL a row, clusters: %s, to %s", all, one), Quantity: serverCPU, Of: all, To: one, AtMost: dearer},
		{Number: "11", What: fmt.Sprintf("rows/s of all, clusters: %s, to %s", all, one), Quantity: sinkRows, Of: all, To: one},
	}
	for _, n := range sizes {
		e.Ways = append(e.Ways, measure.Way{
			Name: measure.Number(float64(n)), Factor: float64(n) / float64(sizes[0]),
			Run: func(ctx context.Context, _ int) (measure.Values, error) { return s.run(ctx, s.clusters[:n]) },
		})
	}
	return e
}

// run has some of the clusters write at once.
func (s *shared) run(ctx context.Context, clusters []string) (measure.Values, error) {
	database, err := s.server.Copy(ctx, s.begun)
	if err != nil {
		return nil, err
	}
	took, wal, err := s.write(ctx, database, clusters)
	if err != nil {
		return nil, err
	}
	total := len(s.rows.first)*len(s.clusters) + len(s.rows.events)*len(clusters)
	switch n, err := rowsIn(ctx, database); {
	case err != nil:
		return nil, err
	case n != int64(total):
		return nil, fmt.Errorf("there are %d rows, and must be %d", n, total)
	}
	rows := float64(len(s.rows.events) * len(clusters))
	return measure.Values{
		allCPU: took.server.Seconds(), serverCPU: each(took.server, rows), sinksCPU: each(took.client, rows), walLogged: wal / rows, sinkRows: rows / took.clock.Seconds(),
	}, s.server.Drop(ctx, database)
}

// write opens the sinks and encodes what they are to write; only their commits count.
func (s *shared) write(ctx context.Context, database string, clusters []string) (c cost, wal float64, err error) {
	sinks := make([]*postgres.Sink, len(clusters))
	defer func() {
		for _, sink := range sinks {
			if sink != nil {
				sink.Close()
			}
		}
	}()
	commits := make([]func() error, len(clusters))
	var all errgroup.Group
	for i, cluster := range clusters {
		all.Go(func() (err error) {
			if sinks[i], err = openSinkOf(ctx, database, cluster, s.rows.resources, s.now); err != nil {
				return err
			}
			commits[i], err = encode(ctx, sinks[i], s.rows.events)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return c, 0, err
	}
	runtime.GC() // the garbage of encoding is not charged
	wal, err = logged(ctx, database, func() (err error) {
		c, err = costOf(s.server, func() error {
			var all errgroup.Group
			for _, commit := range commits {
				all.Go(commit)
			}
			return all.Wait()
		})
		return err
	})
	return c, wal, err
}

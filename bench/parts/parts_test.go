package parts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/internal/config"
)

func TestMain(m *testing.M) {
	if err := Children().Run(context.Background()); !errors.Is(err, measure.ErrNotChild) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var tiny = Sizes{Operations: 1000, Pods: 100, ReadFor: time.Microsecond, Live: 100, Rows: 500, Held: 200, Stopped: 200, Going: 2 * time.Minute, Grown: 10, GrownLive: 100, Steps: []int{1, 2}, Streams: 2, Largest: 4 << 10, Sharing: []int{1, 2}, SharedLive: 100, SharedRows: 2000, NoSync: true}

// mayBeNothing are the quantities that may be 0 for such a small run. The kernel reports the CPU time of other processes in hundredths of a second; a queue allocates less than one thing for
// each delta, and Go rounds that down.
var mayBeNothing = map[string]bool{serverCPU: true, "allocations": true}

// run runs a measure once, so small that its figures say nothing. It shows that all ways do what they are compared for.
func run(t *testing.T, do func(context.Context, *measure.Run, Sizes) error) *measure.Report {
	t.Helper()
	r := &measure.Run{Report: &measure.Report{Seed: 1, Versions: measure.Versions()}, Rounds: 1, Log: t.Output()}
	require.NoError(t, do(t.Context(), r, tiny))
	require.NoError(t, r.Report.Table(t.Output()))
	for _, result := range r.Report.Results {
		require.NotEmpty(t, result.Judged)
		for _, way := range result.Ways {
			for quantity, values := range way.Values {
				require.Len(t, values, 1)
				if mayBeNothing[quantity] {
					continue
				}
				require.Positive(t, values[0], "%s of %s", quantity, way.Name)
			}
		}
	}
	return r.Report
}

func TestTheQueueIsMeasuredWithOneAndEightProducers(t *testing.T) {
	t.Parallel()
	require.Len(t, run(t, Queue).Results, 2)
}

func TestTheIndexerIsMeasured(t *testing.T) {
	t.Parallel()
	require.Len(t, run(t, Index).Results, 3)
}

func TestTheSinkIsMeasuredAgainstCopiesOfItsRows(t *testing.T) {
	t.Parallel()
	recording := filepath.Join(t.TempDir(), "set.zst")
	set, err := data.Generate(data.Settings{Seed: 2, Live: 100, Events: 300})
	require.NoError(t, err)
	require.NoError(t, data.Write(recording, set, "v1.37.1"))
	results := run(t, func(ctx context.Context, r *measure.Run, sizes Sizes) error {
		r.Recording = recording
		return Sink(ctx, r, sizes)
	}).Results
	require.Len(t, results, 2)
	require.Equal(t, "sink-generated", results[0].Name)
	name, err := data.Source{Path: recording}.Name()
	require.NoError(t, err)
	require.Equal(t, "sink-"+name, results[1].Name, "a run that goes on with another recording has not measured that one")
	require.Contains(t, results[1].Data, name)
}

// onTiny has a Set as a sink takes it, on a server.
func onTiny(t *testing.T, use func(*measure.Server, *written)) {
	t.Helper()
	set, err := data.Generate(data.Settings{Seed: 1, Live: tiny.Live, Events: tiny.Rows})
	require.NoError(t, err)
	rows, err := prepare(set, tiny.Rows, time.Now())
	require.NoError(t, err)
	require.NoError(t, measure.OnServer(t.Context(), measure.ServerOptions{}, func(server *measure.Server) error {
		use(server, rows)
		return nil
	}))
}

// Opening a sink may cost PostgreSQL seconds; filling it does not.
func TestToOpenASinkIsNotChargedToPostgreSQL(t *testing.T) {
	t.Parallel()
	onTiny(t, func(server *measure.Server, rows *written) {
		s := &sinkRun{server: server, source: "generated", dir: t.TempDir(), now: time.Now(), rows: rows}
		require.NoError(t, s.begin(t.Context()))
		database, err := server.Copy(t.Context(), s.begun)
		require.NoError(t, err)
		// It is read for each stream that is opened, and never while rows are written.
		require.NoError(t, on(t.Context(), database, func(db *pgx.Conn) error {
			_, err := db.Exec(t.Context(), `
				ALTER TABLE kuberewind.exclusions RENAME TO before;
				CREATE VIEW kuberewind.exclusions AS SELECT * FROM kuberewind.before
					UNION ALL SELECT n::integer, -n::integer, '', '', '', now() FROM (SELECT count(*) AS n FROM generate_series(1, 1000000)) AS burnt WHERE n = 0;
				GRANT SELECT ON kuberewind.exclusions TO PUBLIC`)
			return err
		}))
		before, err := measure.CPUOfTree(server.PID)
		require.NoError(t, err)
		charged, err := s.sink(t.Context(), database, true)
		require.NoError(t, err)
		after, err := measure.CPUOfTree(server.PID)
		require.NoError(t, err)
		opening := after - before - charged.server
		require.Greater(t, opening, 400*time.Millisecond, "this test has it be expensive")
		require.Less(t, charged.server, opening/2)
	})
}

func TestPsqlCopiesAllThatASinkInserts(t *testing.T) {
	t.Parallel()
	onTiny(t, func(server *measure.Server, rows *written) {
		s := &sinkRun{server: server, source: "generated", dir: t.TempDir(), now: time.Now(), rows: rows}
		require.NoError(t, s.begin(t.Context()))
		counts := func(write func(database string) (cost, error)) (counted []int64) {
			database, err := server.Copy(t.Context(), s.begun)
			require.NoError(t, err)
			_, err = write(database)
			require.NoError(t, err)
			require.NoError(t, on(t.Context(), database, func(db *pgx.Conn) error {
				for _, of := range inserted {
					var n int64
					if err := db.QueryRow(t.Context(), fmt.Sprintf(`SELECT count(*) FROM kuberewind.%s WHERE %s > $1`, of.name, of.after), len(rows.first)).Scan(&n); err != nil {
						return err
					}
					counted = append(counted, n)
				}
				return nil
			}))
			return counted
		}
		bySink := counts(func(database string) (cost, error) { return s.sink(t.Context(), database, false) })
		require.NotContains(t, bySink, int64(0))
		require.Equal(t, bySink, counts(func(database string) (cost, error) { return s.copy(t.Context(), database, "binary", len(inserted)) }))
		deltas := counts(func(database string) (cost, error) { return s.copy(t.Context(), database, "text", 1) })
		require.Equal(t, []int64{bySink[0], 0, 0, 0, 0}, deltas)
	})
}

func TestPsqlReportsTheTimeOfItsCommandAndItsError(t *testing.T) {
	t.Parallel()
	require.NoError(t, measure.OnServer(t.Context(), measure.ServerOptions{}, func(server *measure.Server) error {
		s := &sinkRun{server: server}
		c, err := s.psql(t.Context(), server.URL, `SELECT pg_sleep(0.2);`)
		require.NoError(t, err)
		require.GreaterOrEqual(t, c.clock, 200*time.Millisecond)
		require.Positive(t, c.client)
		c, err = s.psql(t.Context(), server.URL, `SELECT count(*) FROM generate_series(1, 1000000);`)
		require.NoError(t, err)
		require.Positive(t, c.server)
		_, err = s.psql(t.Context(), server.URL, `SELECT * FROM nothing;`)
		require.ErrorContains(t, err, `relation "nothing" does not exist`)
		return nil
	}))
}

func TestTheMemoryOfAnObjectIsMeasuredAgainstInformers(t *testing.T) {
	t.Parallel()
	require.Len(t, run(t, Memory).Results, 1)
}

func TestAStartIsMeasuredAgainstARelist(t *testing.T) {
	t.Parallel()
	require.Len(t, run(t, Restart).Results, 1)
}

// The cluster goes on while others are measured: a recorder that is started later would have missed more.
func TestEveryStartHasMissedTheSame(t *testing.T) {
	t.Parallel()
	set, err := data.Generate(data.Settings{Seed: 1, Live: tiny.Stopped, Events: int(tiny.Going.Seconds()) * restartRate})
	require.NoError(t, err)
	r := &measure.Run{Report: &measure.Report{Seed: 1, Versions: measure.Versions()}}
	require.NoError(t, measure.OnServer(t.Context(), measure.ServerOptions{DateCommits: true}, func(database *measure.Server) error {
		return onServed(r, database, set, restartRate, func(s *served) error {
			restart := &restart{served: s}
			require.NoError(t, restart.begin(t.Context()))
			defer func() { require.NoError(t, restart.others.end()) }()
			for _, begin := range []func(context.Context) (gone, error){restart.missing, restart.missing, restart.forgotten} {
				live, _ := set.Len()
				happened := s.Progress().Written
				g, err := begin(t.Context())
				require.NoError(t, err)
				require.GreaterOrEqual(t, int(g.seq), live+happened, "what has happened while others were measured is not missed")
				// Several may have come at once in the end: Events expire together.
				require.GreaterOrEqual(t, g.missed, restartMissed)
				require.Less(t, g.missed, 2*restartMissed)
				require.NoError(t, on(t.Context(), g.database, func(db *pgx.Conn) error {
					var seq int64
					require.NoError(t, db.QueryRow(t.Context(), `SELECT max(seq) FROM kuberewind.deltas_data`).Scan(&seq))
					require.Equal(t, g.seq, seq)
					return nil
				}))
			}
			return nil
		})
	}))
}

// It is not run at the same time as others, which use memory too.
func TestMemoryOfGarbageDoesNotStayResident(t *testing.T) {
	const size = 64 << 20
	before, err := measure.MemoryOf(os.Getpid())
	require.NoError(t, err)
	garbage := bytes.Repeat([]byte("garbage"), size/7)
	require.Len(t, garbage, size/7*7)
	now(true, false)
	after, err := measure.MemoryOf(os.Getpid())
	require.NoError(t, err)
	require.Less(t, after.Now, before.Now+size/4)
}

// One axis of generated data and one of custom resources are measured.
func TestGrowthIsMeasuredOnEachAxis(t *testing.T) {
	t.Parallel()
	all := axes(1, tiny)
	results := run(t, func(ctx context.Context, r *measure.Run, sizes Sizes) error {
		return growth(ctx, r, sizes, []axis{all[0], all[2]})
	}).Results
	require.Len(t, results, 3)
	shared := results[2]
	require.Equal(t, "growth-clusters", shared.Name)
	require.Equal(t, []string{"1", "2"}, []string{shared.Ways[0].Name, shared.Ways[1].Name})
	require.InDelta(t, 2, shared.Ways[1].Factor, 0)
	// A row costs the same; twice as many cost twice as much.
	require.InEpsilon(t, shared.Ways[0].Values[walLogged][0], shared.Ways[1].Values[walLogged][0], 0.3)
	for i, way := range shared.Ways {
		require.InEpsilon(t, float64((i+1)*tiny.SharedRows)*way.Values[serverCPU][0]/1e6, way.Values[allCPU][0], 0.01)
	}
}

func TestEachAxisGrowsAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	large := tiny
	large.Grown, large.GrownLive, large.Largest = 2000, 2000, 256<<10
	all := axes(1, large)
	type extent struct {
		streams, live, events int
		bytes                 int // of the largest object
	}
	of := func(a axis, size int) (e extent) {
		set, err := a.set(size)
		require.NoError(t, err)
		e.streams = len(set.Resources())
		e.live, e.events = set.Len()
		for o := range set.First() {
			e.bytes = max(e.bytes, len(o.Object))
		}
		return e
	}
	grown := func(a axis) (from, to extent) { return of(a, a.sizes[0]), of(a, a.sizes[1]) }
	from, to := grown(all[0])
	require.Equal(t, extent{from.streams, from.live, 2 * from.events, from.bytes}, to, "deltas")
	from, to = grown(all[1])
	require.Equal(t, []int{from.streams, from.events}, []int{to.streams, to.events}, "live objects")
	require.Zero(t, from.events, "what deltas cost would hide what objects do")
	require.InEpsilon(t, 2*from.live, to.live, 0.1) // Events expire together, a fifth of what lives
	from, to = grown(all[2])
	require.Equal(t, extent{2 * from.streams, 2 * from.live, 2 * from.events, from.bytes}, to, "streams")
	from, to = grown(all[3])
	require.Equal(t, []int{from.streams, from.live, from.events}, []int{to.streams, to.live, to.events}, "bytes")
	require.InEpsilon(t, large.Largest/(1<<10)*from.bytes, to.bytes, 0.2) // no object is smaller than its metadata
}

func TestARecordIsSizedByWhatTheDataTakes(t *testing.T) {
	t.Parallel()
	const live, events = 200, 3000
	of := Weighing{Seed: 1, Live: live, Events: events, Times: 1, NoSync: true}
	w, err := Weigh(t.Context(), of)
	require.NoError(t, err)
	require.Equal(t, events, w.Events)
	require.Greater(t, w.Node, w.Lease)
	require.Greater(t, w.Keyframe, w.Lease)
	require.Greater(t, w.PodBytes, w.PodDeltas*100)
	require.InDelta(t, 2, w.LivePerPod, 1)
	require.Positive(t, w.Checkpoint)
	require.Greater(t, w.Idle.CPU, 2*w.Busy.CPU, "a commit costs more than a row")
	require.Greater(t, w.Idle.Log, w.Busy.Log)
	require.Greater(t, w.Busy.Log, 200.0)
	var out bytes.Buffer
	require.NoError(t, w.Table(&out, Cluster{Nodes: 2, Pods: 10, Replaced: 20, Leaders: 3}))
	t.Log("\n" + out.String())

	of.Events = 1
	_, err = Weigh(t.Context(), of)
	require.ErrorContains(t, err, "take more")
}

// Round weights, of which everything is computed by hand.
func TestADayOfAClusterIsTheSumOfItsLines(t *testing.T) {
	w := Weights{Lease: 500, Node: 2000, PodDeltas: 20, PodBytes: 30_000, Keyframe: 4000, LivePerPod: 2, Checkpoint: 250, Busy: Load{CPU: 25, Log: 1200}, Idle: Load{CPU: 400, Log: 3000}}
	live := 2 * 100_000
	interval := checkpoint.Interval(int64(live))
	require.Equal(t, int64(300_000), interval, "so many live objects that the least is less")
	var out bytes.Buffer
	require.NoError(t, w.Table(&out, Cluster{Nodes: 1000, Pods: 100_000, Replaced: 50_000, Leaders: 10}))
	// 8,640,000 + 288,000 + 432,000 + 50,000·20 + 100,000·2 deltas. Their bytes: 4.32 + 0.576 + 0.216 + 50,000·30,000 = 1.5 + 0.8 GB.
	// 10,560,000 of 300,000 are 35.2 checkpoints of 200,000 objects of 250 bytes: 1.76 GB. All: 9.172 GB, or 869 bytes of a delta.
	want := [][]string{
		{"in a day", "deltas", "bytes of one", "GB"},
		{"Leases of Nodes: 1,000 × 8,640", "8,640,000", "500", "4.320"},
		{"Nodes that report: 1,000 × 288", "288,000", "2,000", "0.576"},
		{"Leases of leaders: 10 × 43,200", "432,000", "500", "0.216"},
		{"Pods made, and what comes with them: 50,000 × 20", "1,000,000", "1,500", "1.500"},
		{"every live object once a day: 100,000 × 2", "200,000", "4,000", "0.800"},
		{"checkpoints, one every 300,000 deltas: 200,000 each", "250", "1.760"},
		{"all", "10,560,000", "869", "9.172"},
	}
	table, rest, _ := strings.Cut(out.String(), "\n\n")
	var got [][]string
	for line := range strings.Lines(table) {
		got = append(got, regexp.MustCompile(` {3,}`).Split(strings.TrimSpace(line), -1))
	}
	require.Equal(t, want, got)
	// 10,560,000 a day are 122.2 a second; each takes 25 µs, so that 20,000 have one core half busy.
	require.Equal(t, `122 deltas a second on average; 275 GB in 30 days, 3,348 GB in a year.

PostgreSQL, 2,000 deltas in a transaction, as when much waits: 25 µs of CPU a delta, 1.2 kB of log: 122 deltas a second are 0.00306 of a core and 147 kB/s of log.
PostgreSQL, one in a transaction, as when they come one by one: 400 µs of CPU a delta, 3 kB of log: 122 deltas a second are 0.0489 of a core and 367 kB/s of log.
One core of PostgreSQL is half busy with 1,250 deltas a second of all its clusters when they come one by one, and with 20,000 when much waits; checkpoints and sweeps come on top.
`, rest)
}

func TestTheSinkIsMeasuredWithTheBatchesOfARecorder(t *testing.T) {
	require.Equal(t, batchRows, config.Default().BatchRows)
}

func TestTheResultsOfABenchmarkAreReadByTheirUnits(t *testing.T) {
	values, err := reported(strings.Fields("BenchmarkX/y-2 \t 200 \t 12.5 ns/op\t 3 held-B/object\t 16 B/op\t 1 allocs/op"))
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"ns/op": 12.5, "held-B/object": 3, "B/op": 16, "allocs/op": 1}, values)
	for _, line := range []string{"BenchmarkX-2 200", "BenchmarkX-2 200 fast ns/op"} {
		_, err := reported(strings.Fields(line))
		require.Error(t, err)
	}
}

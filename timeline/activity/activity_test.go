package activity_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scene/record"
	"github.com/kuberewind/kuberewind/internal/scenetest"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/timeline/activity"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var cluster = history.Cluster{Number: 1, Name: record.Cluster}

// counter returns a Counter with the rights of a login of a role.
func counter(t testing.TB, db *pgtest.Database, role string, o activity.Options) *activity.Counter {
	t.Helper()
	pool, err := postgres.NewCounterPool(t.Context(), db.Login(t, role), activity.Session)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	o.Busy = 1
	return activity.NewCounter(pool, cluster, o)
}

// A change of the classification changes these numbers, and must raise class.Version. Otherwise the Counter would keep old
// counts.
func TestCountsOfTheSceneMatchTheClassifierVersion(t *testing.T) {
	const version, classes = 1, "added 80, change 141, deleted 43, event 189, heartbeat 416, status 287, sync 205"
	db := pgtest.New(t, scenetest.Record)
	conn := db.Connect(t)
	require.NoError(t, counter(t, db, migrations.WriterRole, activity.Options{Block: 1361}).CountDue(t.Context()))
	for _, width := range []string{"minute", "hour", "minute of resource", "hour of resource"} {
		var got string
		var versions []int
		err := conn.QueryRow(t.Context(), `
			SELECT string_agg(class || ' ' || n, ', ' ORDER BY class), array_agg(DISTINCT classifier) FROM (
				SELECT c.class, a.classifier, sum(c.n) AS n FROM kuberewind.activity a, unnest(a.classes, a.counts) AS c (class, n) WHERE a.width = $1 GROUP BY c.class, a.classifier
			) x`, width).Scan(&got, &versions)
		require.NoError(t, err)
		require.Equal(t, classes, got, "raise class.Version, and change these numbers")
		require.Equal(t, []int{version}, versions)
	}
}

func TestTheCounterSkipsABlockWithAMissingDelta(t *testing.T) {
	db := pgtest.New(t, scenetest.Record)
	db.Exec(t, "DELETE FROM kuberewind.deltas_data WHERE seq = 150")
	err := counter(t, db, migrations.WriterRole, activity.Options{Block: 100}).CountDue(t.Context())
	require.ErrorContains(t, err, "count the deltas from 101 to 200: the record is damaged: of the seqs 101 to 200, 99 are on record")
	var rows, around int
	require.NoError(t, db.Connect(t).QueryRow(t.Context(), "SELECT count(*), count(*) FILTER (WHERE first_seq IN (1, 101, 201)) FROM kuberewind.activity").Scan(&rows, &around))
	require.Equal(t, 5*12, rows)
	require.Equal(t, 5*2, around)
}

func TestTheCounterYieldsToAPrune(t *testing.T) {
	db := pgtest.New(t, scenetest.Record)
	counter := counter(t, db, migrations.WriterRole, activity.Options{Block: 1361})
	prune, err := db.Connect(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = prune.Exec(t.Context(), "SELECT FROM kuberewind.days FOR UPDATE")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	require.ErrorContains(t, counter.Rebuild(ctx), "lock timeout")
	_, err = prune.Exec(t.Context(), "DELETE FROM kuberewind.activity") // The counter has released its locks.
	require.NoError(t, err)
	require.NoError(t, prune.Rollback(t.Context()))
	require.NoError(t, counter.Rebuild(t.Context()))
}

// A logged keeps the log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) lines() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), "\n")
}

func TestALoginWithoutRightsLogsOneErrorThatSaysWhatItNeeds(t *testing.T) {
	db := pgtest.New(t, scenetest.Record)
	var log logged
	options := activity.Options{CheckEvery: time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))}
	refused, counting := counter(t, db, migrations.AuditorRole, options), counter(t, db, migrations.WriterRole, activity.Options{CheckEvery: time.Millisecond, Block: 100})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { require.NoError(t, refused.Run(ctx)) })
	running.Go(func() { require.NoError(t, counting.Run(ctx)) })
	conn := db.Connect(t)
	rows := func() (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM kuberewind.activity").Scan(&n))
		return n
	}
	require.Eventually(t, func() bool { return log.lines() > 0 && rows() == 5*13 }, 5*time.Minute, time.Millisecond)
	for range 3 { // The other counter checks often meanwhile.
		_, err := conn.Exec(t.Context(), "DELETE FROM kuberewind.activity WHERE first_seq = 1")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return rows() == 5*13 }, 5*time.Minute, time.Millisecond)
	}
	cancel()
	running.Wait()
	require.Equal(t, 1, log.lines(), log.text.String())
	require.Contains(t, log.text.String(), "this login may not become kuberewind_counter: run \\\"recorder migrate\\\" as the owner of the record")
}

// whole is a fleet that has the namespace whose UID is that of the cluster.
type whole struct{ data.Set }

func (s whole) Resources() []data.Resource {
	return append(append([]data.Resource{}, s.Set.Resources()...), data.Resource{Version: "v1", Resource: "namespaces", Kind: "Namespace"})
}

func (s whole) First() iter.Seq[data.Event] {
	return func(yield func(data.Event) bool) {
		for e := range s.Set.First() {
			system := data.Event{
				Resource: len(s.Set.Resources()), Type: e.Type, Name: "kube-system", UID: "fleet", RV: 1, At: e.At,
				Object: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"fleet","resourceVersion":"1"}}`),
			}
			if !yield(system) {
				return
			}
			break
		}
		s.Set.First()(yield)
	}
}

// fleet is the Setup of a database that holds an hour of 2,000 objects.
func fleet(ctx context.Context, conn *pgx.Conn) error {
	set, err := data.Generate(data.Settings{Seed: 1, Live: 2000, Events: 60_000})
	if err != nil {
		return err
	}
	if err := pgtest.EmptyRecord(ctx, conn); err != nil {
		return err
	}
	return record.SetInto(ctx, conn.Config().ConnString(), whole{set}, nil)
}

// BenchmarkCounting measures the cost of a delta: the CPU of the counter and of PostgreSQL, and bytes. The bytes of the
// counts are a share of the bytes of the deltas with their indexes. A row takes 80 bytes in addition to its arrays, with
// its index entry.
func BenchmarkCounting(b *testing.B) {
	for _, of := range []struct {
		name  string
		setup pgtest.Setup
		block int64
	}{{"the recorded scene", scenetest.Record, 1361}, {"a generated fleet", fleet, activity.BlockDeltas}} {
		b.Run(of.name, func(b *testing.B) {
			db := pgtest.New(b, of.setup)
			conn := db.Connect(b)
			c := counter(b, db, migrations.WriterRole, activity.Options{Block: of.block})
			var deltas int64
			_, err := conn.Exec(b.Context(), "VACUUM (ANALYZE)") // Otherwise the measurement would include autovacuum.
			require.NoError(b, err)
			began := cpu(b, conn)
			rounds := 0
			for b.Loop() {
				require.NoError(b, c.Rebuild(b.Context()))
				rounds++
			}
			used := cpu(b, conn) - began
			require.NoError(b, conn.QueryRow(b.Context(), "SELECT sum(last_seq - first_seq + 1)::bigint FROM kuberewind.activity WHERE width = 'hour'").Scan(&deltas))
			var share float64
			require.NoError(b, conn.QueryRow(b.Context(), `
				SELECT 100.0 * (SELECT sum(80 + pg_column_size(times) + pg_column_size(streams) + pg_column_size(namespaces) + pg_column_size(managers) + pg_column_size(classes)
						+ pg_column_size(counts) + pg_column_size(first_seqs) + pg_column_size(last_seqs) + pg_column_size(deltas)) FROM kuberewind.activity)
					/ sum(pg_total_relation_size(inhrelid))::float8
				FROM pg_inherits WHERE inhparent = 'kuberewind.deltas_data'::regclass`).Scan(&share))
			b.ReportMetric(float64(used.Nanoseconds())/1000/float64(deltas)/float64(rounds), "CPU-µs/delta")
			b.ReportMetric(share, "%-of-deltas-bytes")
			b.ReportMetric(float64(deltas), "deltas")
			require.Less(b, share, 3.0)
		})
	}
}

// cpu returns the CPU time of this process and of the server.
func cpu(b *testing.B, conn *pgx.Conn) time.Duration {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", conn.PgConn().PID()))
	require.NoError(b, err)
	_, after, _ := strings.Cut(string(status), "\nPPid:")
	line, _, _ := strings.Cut(after, "\n")
	parent, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(b, err)
	server, err := measure.CPUOfTree(parent)
	require.NoError(b, err)
	own, err := measure.CPUOfSelf()
	require.NoError(b, err)
	return server + own
}

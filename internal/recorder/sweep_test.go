package recorder

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/clock"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/sweep"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A swept is a recorder with a real sink, a queue and a pump that the test works by hand.
type swept struct {
	sweeper  *sweep.Sweeper
	sink     *postgres.Sink
	queue    *deltafifo.Queue
	t        *testing.T
	conn     *pgxpool.Pool
	at       time.Time
	config   postgres.Config
	seen     time.Time // when the last entry of the spool was seen
	memory   int64     // of a queue that spills
	recorder *Recorder
}

func newSwept(t *testing.T) *swept {
	db := pgtest.Shared(t).New(t, pgtest.EmptyRecord)
	s := &swept{t: t, conn: db.Pool(t), memory: 1000, at: time.Date(2026, 3, 10, 23, 0, 0, 0, time.UTC)}
	s.config = postgres.Config{URL: db.URL(), ClusterUID: "uid", ClusterName: "prod", Now: func() time.Time { return s.at }}
	s.open()
	t.Cleanup(func() { s.sink.Close() })
	return s
}

func (s *swept) open() {
	s.t.Helper()
	sink, err := postgres.Open(s.t.Context(), s.config)
	require.NoError(s.t, err)
	s.recorder = newRecorder(config.Config{ListConcurrency: 1, CheckpointEvery: 1}, slog.New(slog.DiscardHandler))
	r := s.recorder
	r.database, err = database.Open(s.t.Context(), config.Config{Database: s.config.URL}, r.log)
	require.NoError(s.t, err)
	r.clusterName = s.config.ClusterName
	r.sink, r.metrics, r.now = sink, &metrics{telemetry.NewMetrics()}, func() time.Time { return s.at }
	r.clock = clock.New(clock.Host{Wall: r.now, Elapsed: func() time.Duration { return 0 }}, s.at)
	r.filter, err = filter.New(nil, nil)
	require.NoError(s.t, err)
	r.redactor, err = redact.New(redact.Key{}, redact.Hash, nil)
	require.NoError(s.t, err)
	r.queue = deltafifo.New(deltafifo.Options{BookmarkLinger: 1, Now: r.now})
	s.sweeper, s.sink, s.queue = r.newSweeper(), r.sink, r.queue
}

// spill gives the recorder a queue with little room in memory, for two objects, and goes on from the spool.
func (s *swept) spill(dir string) {
	s.t.Helper()
	s.spillTo(spool.Options{Dir: dir, MaxBytes: 1 << 20})
}

func (s *swept) spillTo(folder spool.Options) {
	s.t.Helper()
	r := s.recorder
	r.spool = &spooling.Folder{Options: folder, Log: r.log, Metrics: r.metrics.Metrics}
	require.NoError(s.t, r.spool.Open(s.t.Context()))
	o := deltafifo.Options{MaxBytes: s.memory, BookmarkLinger: 1, Now: r.now}
	var err error
	s.seen, err = r.useSpool(s.t.Context(), &o, spooling.NewOwner("uid", nil, r.sink.Info().Head))
	require.NoError(s.t, err)
	r.queue = deltafifo.New(o)
	s.sweeper, s.sink, s.queue = r.newSweeper(), r.sink, r.queue
}

// die ends the process, and leaves what is in the spool.
func (s *swept) die() {
	s.t.Helper()
	require.NoError(s.t, s.recorder.spool.Close())
	s.sink.Close()
	s.open()
}

// leaveOut gives the recorder a rule before any stream is opened, "" for none.
func (s *swept) leaveOut(rule string) {
	s.t.Helper()
	var rules []string
	if rule != "" {
		rules = []string{rule}
	}
	var err error
	s.recorder.filter, err = filter.New(nil, rules)
	require.NoError(s.t, err)
}

func (s *swept) follow(resource, kind string) (*stream, *deltafifo.FIFO) {
	s.t.Helper()
	st, _, err := s.recorder.streamOf(s.t.Context(), kube.Resource{Name: resource, Kind: kind, Version: "v1", Namespaced: true}, "")
	require.NoError(s.t, err)
	return st, s.queue.FIFO(deltafifo.FIFOOptions{Stream: st, KnownObjects: st.record.Known(), Rules: st.rules.String(), Attach: st.exclusions.attach})
}

// pump writes what is queued.
func (s *swept) pump() {
	s.t.Helper()
	for s.queue.Stats().Entries+s.queue.Stats().Spooled > 0 {
		entries, err := s.queue.Next(s.t.Context(), 1000, 1<<20, 0)
		require.NoError(s.t, err)
		s.write(entries)
	}
}

// await writes the next entry of the queue as soon as it is there.
func (s *swept) await() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	entries, err := s.queue.Next(ctx, 1, 1<<20, 0)
	require.NoError(s.t, err)
	s.write(entries)
}

func (s *swept) write(entries []deltafifo.Entry) {
	s.t.Helper()
	items, err := itemsOf(entries)
	require.NoError(s.t, err)
	batch, err := s.sink.Encode(items)
	require.NoError(s.t, err)
	batch.SetOffset(s.recorder.spoolOffset(len(entries)))
	require.NoError(s.t, s.sink.Commit(s.t.Context(), batch))
	s.queue.Done(len(entries))
}

func (s *swept) round() {
	s.t.Helper()
	require.NoError(s.t, s.sweeper.Round(s.t.Context()))
}

// told gives the deltas from a seq on, and the sweeps.
func (s *swept) told(from int) (deltas, sweeps []string) {
	s.t.Helper()
	read := func(sql string, args ...any) []string {
		rows, err := s.conn.Query(s.t.Context(), sql, args...)
		require.NoError(s.t, err)
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(s.t, err)
		return all
	}
	return read(`SELECT trim(concat_ws(' ', type, source, resource, name, version)) FROM kuberewind.deltas WHERE seq >= $1 ORDER BY resource, name, seq`, from),
		read(`SELECT concat_ws(' ', day, objects) FROM kuberewind.sweeps ORDER BY day`)
}

func served(t *testing.T, kind, name string, rv int) *kube.Object {
	t.Helper()
	o := &kube.Object{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: fmt.Sprint(rv)}}
	doc, err := patch.Canonical(fmt.Appendf(nil, `{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":"a","resourceVersion":"%d","uid":%q}}`, kind, name, rv, o.UID))
	require.NoError(t, err)
	o.SetDoc(doc)
	return o
}

func TestEachLivingObjectIsStoredOnceADay(t *testing.T) {
	s := newSwept(t)
	_, pods := s.follow("pods", "Pod")
	_, services := s.follow("services", "Service")
	require.NoError(t, pods.Add(served(t, "Pod", "quiet", 11)))
	require.NoError(t, pods.Add(served(t, "Pod", "busy", 12)))
	require.NoError(t, services.Add(served(t, "Service", "web", 13)))
	s.pump()

	s.at = s.at.Add(59*time.Minute + 59*time.Second)
	require.NoError(t, pods.Update(served(t, "Pod", "busy", 14)))
	s.at = s.at.Add(2 * time.Second) // another day, and what was seen in the last one still waits
	s.round()
	s.pump()
	s.round()
	s.pump()
	s.round()
	require.NoError(t, pods.Bookmark("20"))
	s.pump()
	deltas, sweeps := s.told(4)
	require.Equal(t, []string{"Updated watch pods busy", "Sync resync pods busy v1", "Sync resync pods quiet v1", "Sync resync services web v1"}, deltas)
	require.Equal(t, []string{"2026-03-11 3"}, sweeps)

	s.round()
	require.Zero(t, s.queue.Stats().Entries, "the day is done")
}

func TestWhatIsNotFollowedAnyMoreIsStoredToo(t *testing.T) {
	s := newSwept(t)
	_, gone := s.follow("things", "Thing")
	require.NoError(t, gone.Add(served(t, "Thing", "last", 11)))
	s.pump()
	s.sink.Close()
	s.open()
	_, pods := s.follow("pods", "Pod")
	s.at = s.at.AddDate(0, 0, 1)
	s.round()
	s.pump()
	s.round()
	require.NoError(t, pods.Bookmark("20"))
	s.pump()
	deltas, sweeps := s.told(2)
	require.Equal(t, []string{"Sync resync things last v1"}, deltas)
	require.Equal(t, []string{"2026-03-11 1"}, sweeps)
}

// reject has the database reject every change of some rows of streams. accept ends that.
func (s *swept) reject(rows string) (accept func()) {
	s.t.Helper()
	_, err := s.conn.Exec(s.t.Context(), `ALTER TABLE kuberewind.streams ADD CONSTRAINT rejected CHECK (NOT (`+rows+`)) NOT VALID`)
	require.NoError(s.t, err)
	return func() {
		s.t.Helper()
		_, err := s.conn.Exec(s.t.Context(), `ALTER TABLE kuberewind.streams DROP CONSTRAINT rejected`)
		require.NoError(s.t, err)
	}
}

// nextDay restarts the recorder on the day after it has recorded an object of each resource.
func (s *swept) nextDay(resources ...string) {
	s.t.Helper()
	for i, resource := range resources {
		_, fifo := s.follow(resource, "Thing")
		require.NoError(s.t, fifo.Add(served(s.t, "Thing", "of-"+resource, 11+i)))
	}
	s.pump()
	s.die()
	s.at = s.at.AddDate(0, 0, 1)
}

func TestAResourceThatTheDatabaseRejectsHoldsUpTheSweepOfNoOther(t *testing.T) {
	s := newSwept(t)
	s.nextDay("first", "things", "last", "pods")
	accept := s.reject(`resource = 'things'`)
	_, pods := s.follow("pods", "Thing")
	lines := s.logs()
	close(s.recorder.recording)
	s.run(s.recorder.makeCheckpoints)
	sweep := func() error {
		err := s.sweeper.Round(t.Context())
		require.NoError(t, pods.Bookmark(fmt.Sprint(s.seq()+30)))
		s.pump()
		return err
	}
	_, _, err := sweep(), sweep(), sweep()
	deltas, sweeps := s.told(5)
	require.Equal(t, []string{"Sync resync first of-first v1", "Sync resync last of-last v1", "Sync resync pods of-pods v1"}, deltas)
	require.Empty(t, sweeps, "I8")
	require.ErrorContains(t, err, "until things can be opened, no further day can be dropped and no checkpoint is made: ")

	accept()
	for range 3 {
		require.NoError(t, sweep())
	}
	deltas, sweeps = s.told(8)
	require.Equal(t, []string{"Sync resync things of-things v1"}, deltas)
	require.Equal(t, []string{"2026-03-11 4"}, sweeps)
	require.Regexp(t, `"made a checkpoint" cluster=prod seq=[78] `, lines.next(t), "I9: not before all streams were open")
}

func TestAResourceThatIsServedInARejectedVersionIsSweptUnderTheOneOnRecord(t *testing.T) {
	s := newSwept(t)
	s.nextDay("things")
	s.reject(`version = 'v2'`)
	h := newHandler(s.recorder, func(err error) { require.NoError(t, err) })
	require.ErrorContains(t, h.Added(t.Context(), kube.Resource{Name: "things", Kind: "Thing", Version: "v2", Namespaced: true}, ""), "rejected")
	s.run(s.recorder.sweep)
	s.recorder.synced.Store(true)
	close(s.recorder.recording)
	s.await()
	deltas, _ := s.told(2)
	require.Equal(t, []string{"Sync resync things of-things v1"}, deltas)
	_, err := s.recorder.ready()
	require.ErrorContains(t, err, "things is not recorded yet")
}

// A sweep in an outage goes to the spool with everything else, that of a resource which is served no more, too.
func TestASweepIsSpooled(t *testing.T) {
	s := newSwept(t)
	_, things := s.follow("things", "Thing")
	for i := range 3 {
		require.NoError(t, things.Add(served(t, "Thing", fmt.Sprint("last", i), 11+i)))
	}
	_, pods := s.follow("pods", "Pod")
	for i := range 3 {
		require.NoError(t, pods.Add(served(t, "Pod", fmt.Sprint("quiet", i), 21+i)))
	}
	s.pump()
	s.sink.Close()
	s.open()
	dir := t.TempDir()
	s.spill(dir)
	_, pods = s.follow("pods", "Pod")
	s.at = s.at.AddDate(0, 0, 1)
	s.round()
	require.NoError(t, pods.Update(served(t, "Pod", "quiet0", 30)), "the watch is not held back")
	require.Equal(t, 7, s.queue.Stats().Spooled)
	require.Less(t, s.queue.Stats().Entries, 4)
	for range 3 {
		entries, err := s.queue.Next(t.Context(), 1, 0, 0)
		require.NoError(t, err)
		s.write(entries)
	}
	s.die()

	s.spill(dir)
	require.Equal(t, 4, s.queue.Stats().Spooled)
	s.follow("pods", "Pod")
	s.pump()
	s.round()
	_, pods = s.follow("pods", "Pod")
	require.NoError(t, pods.Bookmark("40"))
	s.pump()
	deltas, sweeps := s.told(7)
	require.Equal(t, []string{
		"Sync resync pods quiet0 v1", "Updated watch pods quiet0 v1", "Sync resync pods quiet1 v1", "Sync resync pods quiet2 v1",
		"Sync resync things last0 v1", "Sync resync things last1 v1", "Sync resync things last2 v1",
	}, deltas)
	require.Equal(t, []string{"2026-03-11 6"}, sweeps)
}

func TestNobodyIsBlamedForASweepThatWasSpooled(t *testing.T) {
	s := newSwept(t)
	s.memory = 1
	s.spill(t.TempDir())
	_, things := s.follow("widgets", "Widget")
	_, pods := s.follow("pods", "Pod")
	widget, err := kube.Restore([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"managedFields":[{"manager":"kubectl","operation":"Update","time":"2026-03-01T03:00:00Z"}],"name":"w","namespace":"n","resourceVersion":"11","uid":"u"}}`))
	require.NoError(t, err)
	require.NoError(t, things.Add(widget))
	s.pump()
	s.at = s.at.AddDate(0, 0, 1)
	require.NoError(t, pods.Add(served(t, "Pod", "before", 12)))
	s.round()
	require.Equal(t, 2, s.queue.Stats().Spooled)
	s.pump()
	managers := []string{}
	require.NoError(t, s.conn.QueryRow(t.Context(), `
		SELECT array_agg(concat_ws(' ', type, source, manager) ORDER BY seq) FROM kuberewind.deltas WHERE resource = 'widgets'`).Scan(&managers))
	require.Equal(t, []string{"Added watch kubectl", "Sync resync"}, managers)
}

// It is no trouble, and does not keep the others from being swept.
func TestAStreamOfWhichAPartIsOnDiskIsSweptLater(t *testing.T) {
	s := newSwept(t)
	s.spill(t.TempDir())
	_, pods := s.follow("pods", "Pod")
	_, things := s.follow("things", "Thing")
	require.NoError(t, things.Add(served(t, "Thing", "quiet", 10)))
	require.NoError(t, pods.Add(served(t, "Pod", "a", 11)))
	s.pump()
	for rv := 12; rv < 17; rv++ {
		require.NoError(t, pods.Update(served(t, "Pod", "a", rv)))
	}
	require.Less(t, s.queue.Stats().Entries, 5)
	spooled := s.queue.Stats().Spooled
	s.at = s.at.AddDate(0, 0, 1)
	s.round()
	require.Equal(t, spooled+1, s.queue.Stats().Spooled, "the other stream's")
	s.pump()
	s.round()
	s.pump()
	s.round()
	require.NoError(t, things.Bookmark("40"))
	s.pump()
	_, sweeps := s.told(1)
	require.Equal(t, []string{"2026-03-11 2"}, sweeps)
}

func TestASweepEndsWithTheRecorderThoughTheQueueIsFull(t *testing.T) {
	s := newSwept(t)
	_, pods := s.follow("pods", "Pod")
	require.NoError(t, pods.Add(served(t, "Pod", "quiet", 11)))
	s.pump()
	s.at = s.at.AddDate(0, 0, 1)
	s.queue = deltafifo.New(deltafifo.Options{MaxBytes: 1, Now: s.sweeper.Now})
	s.sweeper.Queue = s.queue
	full := s.queue.FIFO(deltafifo.FIFOOptions{})
	require.NoError(t, full.Add(served(t, "Pod", "other", 12)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.sweeper.Round(ctx), context.Canceled)
}

package recorder

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/cluster"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/resources"
	"github.com/kuberewind/kuberewind/internal/streamtest"
	"github.com/kuberewind/kuberewind/kube"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// swept is a recording whose daily sweep the test runs by hand.
type swept struct {
	*streamtest.Recording
	log  *slog.Logger
	made *Recorder // the last result of recorder
}

func newSwept(t *testing.T) *swept {
	t.Helper()
	return &swept{Recording: streamtest.New(t), log: slog.New(slog.DiscardHandler)}
}

// recorder returns a Recorder with the sink, queue and streams of the recording.
func (s *swept) recorder() *Recorder {
	s.T.Helper()
	if r := s.made; r == nil || r.sink != s.Sink || r.queue != s.Queue || r.streams != s.Streams || r.env.log != s.log {
		s.made = s.newRecorder()
	}
	return s.made
}

func (s *swept) newRecorder() *Recorder {
	s.T.Helper()
	r := newRecorder(config.Config{Pace: config.Pace{ListConcurrency: 1, CheckpointEvery: 1}}, s.log)
	var err error
	r.env.database, err = database.Open(s.T.Context(), config.Config{Storage: config.Storage{Database: s.Config.URL}}, s.log)
	require.NoError(s.T, err)
	r.env.cluster = &cluster.Cluster{Name: s.Config.ClusterName}
	r.sink, r.queue, r.streams, r.clock = s.Sink, s.Queue, s.Streams, s.Clock
	return r
}

func (s *swept) round() {
	s.T.Helper()
	require.NoError(s.T, s.recorder().newSweeper().Round(s.T.Context()))
}

// handler returns a handler that opens the streams of the recorder.
func (s *swept) handler() *resources.Handler {
	r := s.recorder()
	return resources.NewHandler(resources.Options{
		Streams: r.streams, Prior: r.sink.Prior(), Rules: s.Options.Rules, Documents: r.documents, Schemas: r.schemas, Opened: r.env.readiness.opened,
		GiveUp: func(err error) { require.NoError(s.T, err) }, Log: r.env.log,
	})
}

func TestEachLivingObjectIsStoredOnceADay(t *testing.T) {
	s := newSwept(t)
	_, pods := s.Follow("pods", "Pod")
	_, services := s.Follow("services", "Service")
	require.NoError(t, pods.Add(streamtest.Served(t, "Pod", "quiet", 11)))
	require.NoError(t, pods.Add(streamtest.Served(t, "Pod", "busy", 12)))
	require.NoError(t, services.Add(streamtest.Served(t, "Service", "web", 13)))
	s.Pump()

	s.At = s.At.Add(59*time.Minute + 59*time.Second)
	require.NoError(t, pods.Update(streamtest.Served(t, "Pod", "busy", 14)))
	s.At = s.At.Add(2 * time.Second) // the next day; deltas of the last day still wait
	s.round()
	s.Pump()
	s.round()
	s.Pump()
	s.round()
	require.NoError(t, pods.Bookmark("20"))
	s.Pump()
	deltas, sweeps := s.Recorded(4)
	require.Equal(t, []string{"Updated watch pods busy", "Sync resync pods busy v1", "Sync resync pods quiet v1", "Sync resync services web v1"}, deltas)
	require.Equal(t, []string{"2026-03-11 3"}, sweeps)

	s.round()
	require.Zero(t, s.Queue.Stats().Entries, "the day is done")
}

func TestTheSweepStoresObjectsOfResourcesNoLongerFollowed(t *testing.T) {
	s := newSwept(t)
	_, gone := s.Follow("things", "Thing")
	require.NoError(t, gone.Add(streamtest.Served(t, "Thing", "last", 11)))
	s.Pump()
	s.Sink.Close()
	s.Open()
	_, pods := s.Follow("pods", "Pod")
	s.At = s.At.AddDate(0, 0, 1)
	s.round()
	s.Pump()
	s.round()
	require.NoError(t, pods.Bookmark("20"))
	s.Pump()
	deltas, sweeps := s.Recorded(2)
	require.Equal(t, []string{"Sync resync things last v1"}, deltas)
	require.Equal(t, []string{"2026-03-11 1"}, sweeps)
}

// reject makes the database reject every change of some rows of streams. The function that it returns ends that.
func (s *swept) reject(rows string) (accept func()) {
	s.T.Helper()
	_, err := s.Conn.Exec(s.T.Context(), `ALTER TABLE kuberewind.streams ADD CONSTRAINT rejected CHECK (NOT (`+rows+`)) NOT VALID`)
	require.NoError(s.T, err)
	return func() {
		s.T.Helper()
		_, err := s.Conn.Exec(s.T.Context(), `ALTER TABLE kuberewind.streams DROP CONSTRAINT rejected`)
		require.NoError(s.T, err)
	}
}

// nextDay restarts the recorder on the day after it has recorded an object of each resource.
func (s *swept) nextDay(resources ...string) {
	s.T.Helper()
	for i, resource := range resources {
		_, fifo := s.Follow(resource, "Thing")
		require.NoError(s.T, fifo.Add(streamtest.Served(s.T, "Thing", "of-"+resource, 11+i)))
	}
	s.Pump()
	s.Die()
	s.At = s.At.AddDate(0, 0, 1)
}

func TestARejectedResourceDoesNotDelayTheSweepOfOthers(t *testing.T) {
	s := newSwept(t)
	s.nextDay("first", "things", "last", "pods")
	accept := s.reject(`resource = 'things'`)
	_, pods := s.Follow("pods", "Thing")
	lines := s.logs()
	close(s.recorder().progress.recording)
	s.run(s.recorder().makeCheckpoints)
	sweep := func() error {
		err := s.recorder().newSweeper().Round(t.Context())
		require.NoError(t, pods.Bookmark(fmt.Sprint(s.seq()+30)))
		s.Pump()
		return err
	}
	_, _, err := sweep(), sweep(), sweep()
	deltas, sweeps := s.Recorded(5)
	require.Equal(t, []string{"Sync resync first of-first v1", "Sync resync last of-last v1", "Sync resync pods of-pods v1"}, deltas)
	require.Empty(t, sweeps, "I8")
	require.ErrorContains(t, err, "until things can be opened, no further day can be dropped and no checkpoint is made: ")

	accept()
	for range 3 {
		require.NoError(t, sweep())
	}
	deltas, sweeps = s.Recorded(8)
	require.Equal(t, []string{"Sync resync things of-things v1"}, deltas)
	require.Equal(t, []string{"2026-03-11 4"}, sweeps)
	require.Regexp(t, `"made a checkpoint" cluster=prod seq=[78] `, lines.next(t), "I9: not before all streams were open")
}

func TestTheSweepUsesTheRecordedVersionIfTheServedOneIsRejected(t *testing.T) {
	s := newSwept(t)
	s.nextDay("things")
	s.reject(`version = 'v2'`)
	require.ErrorContains(t, s.handler().Added(t.Context(), kube.Resource{Name: "things", Kind: "Thing", Version: "v2", Namespaced: true}, ""), "rejected")
	s.run(s.recorder().sweep)
	s.recorder().env.readiness.synced.Store(true)
	close(s.recorder().progress.recording)
	s.Await()
	deltas, _ := s.Recorded(2)
	require.Equal(t, []string{"Sync resync things of-things v1"}, deltas)
	_, err := s.recorder().env.readiness.state()
	require.ErrorContains(t, err, "things is not recorded yet")
}

// During an outage, the deltas of a sweep go to the spool, also for a resource that is no longer served.
func TestASweepIsSpooled(t *testing.T) {
	s := newSwept(t)
	_, things := s.Follow("things", "Thing")
	for i := range 3 {
		require.NoError(t, things.Add(streamtest.Served(t, "Thing", fmt.Sprint("last", i), 11+i)))
	}
	_, pods := s.Follow("pods", "Pod")
	for i := range 3 {
		require.NoError(t, pods.Add(streamtest.Served(t, "Pod", fmt.Sprint("quiet", i), 21+i)))
	}
	s.Pump()
	s.Sink.Close()
	s.Open()
	dir := t.TempDir()
	s.Spill(dir)
	_, pods = s.Follow("pods", "Pod")
	s.At = s.At.AddDate(0, 0, 1)
	s.round()
	require.NoError(t, pods.Update(streamtest.Served(t, "Pod", "quiet0", 30)), "the watch does not wait")
	require.Equal(t, 7, s.Queue.Stats().Spooled)
	require.Less(t, s.Queue.Stats().Entries, 4)
	for range 3 {
		entries, err := s.Queue.Next(t.Context(), 1, 0, 0)
		require.NoError(t, err)
		s.Write(entries)
	}
	s.Die()

	s.Spill(dir)
	require.Equal(t, 4, s.Queue.Stats().Spooled)
	s.Follow("pods", "Pod")
	s.Pump()
	s.round()
	_, pods = s.Follow("pods", "Pod")
	require.NoError(t, pods.Bookmark("40"))
	s.Pump()
	deltas, sweeps := s.Recorded(7)
	require.Equal(t, []string{
		"Sync resync pods quiet0 v1", "Updated watch pods quiet0 v1", "Sync resync pods quiet1 v1", "Sync resync pods quiet2 v1",
		"Sync resync things last0 v1", "Sync resync things last1 v1", "Sync resync things last2 v1",
	}, deltas)
	require.Equal(t, []string{"2026-03-11 6"}, sweeps)
}

func TestASpooledSweepNamesNoManager(t *testing.T) {
	s := newSwept(t)
	s.Memory = 1
	s.Spill(t.TempDir())
	_, things := s.Follow("widgets", "Widget")
	_, pods := s.Follow("pods", "Pod")
	widget, err := kube.Restore([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"managedFields":[{"manager":"kubectl","operation":"Update","time":"2026-03-01T03:00:00Z"}],"name":"w","namespace":"n","resourceVersion":"11","uid":"u"}}`))
	require.NoError(t, err)
	require.NoError(t, things.Add(widget))
	s.Pump()
	s.At = s.At.AddDate(0, 0, 1)
	require.NoError(t, pods.Add(streamtest.Served(t, "Pod", "before", 12)))
	s.round()
	require.Equal(t, 2, s.Queue.Stats().Spooled)
	s.Pump()
	managers := []string{}
	require.NoError(t, s.Conn.QueryRow(t.Context(), `
		SELECT array_agg(concat_ws(' ', type, source, manager) ORDER BY seq) FROM kuberewind.deltas WHERE resource = 'widgets'`).Scan(&managers))
	require.Equal(t, []string{"Added watch kubectl", "Sync resync"}, managers)
}

// The sweeper returns no error for it, and sweeps the other streams.
func TestAPartlySpooledStreamIsSweptLater(t *testing.T) {
	s := newSwept(t)
	s.Spill(t.TempDir())
	_, pods := s.Follow("pods", "Pod")
	_, things := s.Follow("things", "Thing")
	require.NoError(t, things.Add(streamtest.Served(t, "Thing", "quiet", 10)))
	require.NoError(t, pods.Add(streamtest.Served(t, "Pod", "a", 11)))
	s.Pump()
	for rv := 12; rv < 17; rv++ {
		require.NoError(t, pods.Update(streamtest.Served(t, "Pod", "a", rv)))
	}
	require.Less(t, s.Queue.Stats().Entries, 5)
	spooled := s.Queue.Stats().Spooled
	s.At = s.At.AddDate(0, 0, 1)
	s.round()
	require.Equal(t, spooled+1, s.Queue.Stats().Spooled, "the other stream's")
	s.Pump()
	s.round()
	s.Pump()
	s.round()
	require.NoError(t, things.Bookmark("40"))
	s.Pump()
	_, sweeps := s.Recorded(1)
	require.Equal(t, []string{"2026-03-11 2"}, sweeps)
}

func TestASweepEndsWithTheRecorderEvenIfTheQueueIsFull(t *testing.T) {
	s := newSwept(t)
	_, pods := s.Follow("pods", "Pod")
	require.NoError(t, pods.Add(streamtest.Served(t, "Pod", "quiet", 11)))
	s.Pump()
	s.At = s.At.AddDate(0, 0, 1)
	sweeper := s.recorder().newSweeper()
	s.Queue = deltafifo.New(deltafifo.Options{MaxBytes: 1, Now: sweeper.Now})
	sweeper.Queue = s.Queue
	full := s.Queue.FIFO(deltafifo.FIFOOptions{})
	require.NoError(t, full.Add(streamtest.Served(t, "Pod", "other", 12)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, sweeper.Round(ctx), context.Canceled)
}

// Package streamtest provides a recording that a test drives step by step: real streams, a real sink, queue and spool, and a clock that the
// test sets.
package streamtest

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
	"github.com/kuberewind/kuberewind/internal/canonical"
	"github.com/kuberewind/kuberewind/internal/clock"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/schemacheck"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Recording holds the parts of a recorder. It has no goroutines: the test calls each step.
type Recording struct {
	T               *testing.T
	Conn            *pgxpool.Pool
	Config          postgres.Config
	At              time.Time // the time of the host's clock
	Memory          int64     // the limit, in bytes, of a queue that spills
	Seen            time.Time // the time of the last entry that Spill found
	Sink            *postgres.Sink
	Queue           *deltafifo.Queue
	Clock           *clock.Clock
	Folder          *spooling.Folder
	RollbackStreams *rollback.Streams
	Streams         *stream.Set
	Options         stream.Options // the options of Streams
}

// New returns a Recording of the cluster prod. Its clock shows 23:00.
func New(t *testing.T) *Recording {
	t.Helper()
	db := pgtest.Shared(t).New(t, pgtest.EmptyRecord)
	r := &Recording{T: t, Conn: db.Pool(t), Memory: 1000, At: time.Date(2026, 3, 10, 23, 0, 0, 0, time.UTC)}
	r.Config = postgres.Config{URL: db.URL(), ClusterUID: "uid", ClusterName: "prod", Now: func() time.Time { return r.At }}
	r.Open()
	t.Cleanup(func() { r.Sink.Close() })
	return r
}

// Open starts a new recorder, which records everything and has no spool.
func (r *Recording) Open() {
	r.T.Helper()
	var err error
	r.Sink, err = postgres.Open(r.T.Context(), r.Config)
	require.NoError(r.T, err)
	began := r.At
	r.Clock = clock.New(clock.Host{Wall: func() time.Time { return r.At }, Elapsed: func() time.Duration { return r.At.Sub(began) }}, r.At)
	r.RollbackStreams = rollback.New(rollback.Options{})
	r.Folder = &spooling.Folder{}
	r.Queue = deltafifo.New(deltafifo.Options{BookmarkLinger: 1, Now: r.now})
	r.Options = stream.Options{Record: r.Sink, Rules: &filter.Filter{}, RollbackStreams: r.RollbackStreams, Schemas: schemacheck.NewSchemas(), Metrics: telemetry.NewMetrics()}
	r.Redact(redact.Hash)
}

func (r *Recording) now() time.Time { return r.At }

// Spill gives the recorder a spool in dir, and a queue with memory for about two objects. The recorder resumes from the spool.
func (r *Recording) Spill(dir string) {
	r.T.Helper()
	r.SpillTo(spool.Options{Dir: dir, MaxBytes: 1 << 20})
}

// SpillTo is Spill with options for the spool.
func (r *Recording) SpillTo(folder spool.Options) {
	r.T.Helper()
	r.Folder = &spooling.Folder{Options: folder, Log: slog.New(slog.DiscardHandler), Metrics: r.Options.Metrics}
	require.NoError(r.T, r.Folder.Open(r.T.Context()))
	o := deltafifo.Options{MaxBytes: r.Memory, BookmarkLinger: 1, Now: r.now}
	var err error
	r.Seen, err = r.Streams.Resume(r.T.Context(), r.Folder, spooling.NewOwner("uid", nil, r.Sink.Info().Head), &o, r.Clock)
	require.NoError(r.T, err)
	r.Queue = deltafifo.New(o)
}

// Die ends the recorder without draining, and starts a new one. The entries in the spool stay.
func (r *Recording) Die() {
	r.T.Helper()
	require.NoError(r.T, r.Folder.Close())
	r.Sink.Close()
	r.Open()
}

// LeaveOut sets the exclusion rule of the recorder, "" for none. Call it before a stream is opened.
func (r *Recording) LeaveOut(rule string) {
	r.T.Helper()
	var rules []string
	if rule != "" {
		rules = []string{rule}
	}
	var err error
	r.Options.Rules, err = filter.New(nil, rules)
	require.NoError(r.T, err)
	r.Streams = stream.NewSet(r.Options)
}

// Redact sets the redaction rules of the recorder. Call it before a stream is opened.
func (r *Recording) Redact(secrets redact.Secrets, paths ...string) {
	r.T.Helper()
	parsed, err := redact.ParsePaths(paths)
	require.NoError(r.T, err)
	r.Options.Redactor, err = redact.New(redact.Key{}, secrets, parsed)
	require.NoError(r.T, err)
	r.Streams = stream.NewSet(r.Options)
}

// OpenStream opens and returns the stream of a resource.
func (r *Recording) OpenStream(resource kube.Resource) *stream.Stream {
	r.T.Helper()
	st, _, err := r.Streams.Open(r.T.Context(), resource, "")
	require.NoError(r.T, err)
	return st
}

// Follow returns the stream of a resource, and a FIFO for objects that Served makes.
func (r *Recording) Follow(resource, kind string) (*stream.Stream, *deltafifo.FIFO) {
	r.T.Helper()
	st := r.OpenStream(kube.Resource{Name: resource, Kind: kind, Version: "v1", Namespaced: true})
	return st, r.Queue.FIFO(st.FIFOOptions())
}

// Feed is Follow with a FIFO for objects as the API server serves them. The FIFO redacts them.
func (r *Recording) Feed(resource kube.Resource) (*stream.Stream, *deltafifo.FIFO) {
	r.T.Helper()
	st := r.OpenStream(resource)
	o := st.FIFOOptions()
	o.Transformer = canonical.Transformer(st.Redaction())
	return st, r.Queue.FIFO(o)
}

// Pump writes all queued entries.
func (r *Recording) Pump() {
	r.T.Helper()
	for r.Queue.Stats().Entries+r.Queue.Stats().Spooled > 0 {
		entries, err := r.Queue.Next(r.T.Context(), 1000, 1<<20, 0)
		require.NoError(r.T, err)
		r.Write(entries)
	}
}

// Await waits for the next entry of the queue and writes it.
func (r *Recording) Await() {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), 5*time.Minute)
	defer cancel()
	entries, err := r.Queue.Next(ctx, 1, 1<<20, 0)
	require.NoError(r.T, err)
	r.Write(entries)
}

// Write commits the oldest entries of the queue, with the offset of the spool after them.
func (r *Recording) Write(entries []deltafifo.Entry) {
	r.T.Helper()
	items, err := stream.Items(entries)
	require.NoError(r.T, err)
	batch, err := r.Sink.Encode(items)
	require.NoError(r.T, err)
	batch.SetOffset(r.Folder.Offset(r.Queue.Offset(len(entries))))
	require.NoError(r.T, r.Sink.Commit(r.T.Context(), batch))
	r.Queue.Done(len(entries))
}

// Recorded returns the deltas from a seq on, and the days that were swept.
func (r *Recording) Recorded(from int) (deltas, sweeps []string) {
	r.T.Helper()
	return r.Texts(`SELECT trim(concat_ws(' ', type, source, resource, name, version)) FROM kuberewind.deltas WHERE seq >= $1 ORDER BY resource, name, seq`, from),
		r.Texts(`SELECT concat_ws(' ', day, objects) FROM kuberewind.sweeps ORDER BY day`)
}

// Texts returns the column of text that a query selects.
func (r *Recording) Texts(sql string, args ...any) []string {
	r.T.Helper()
	rows, err := r.Conn.Query(r.T.Context(), sql, args...)
	require.NoError(r.T, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(r.T, err)
	return texts
}

// Served returns an object as the queue holds it.
func Served(t *testing.T, kind, name string, rv int) *kube.Object {
	t.Helper()
	o := &kube.Object{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: fmt.Sprint(rv)}}
	doc, err := patch.Canonical(fmt.Appendf(nil, `{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":"a","resourceVersion":"%d","uid":%q}}`, kind, name, rv, o.UID))
	require.NoError(t, err)
	o.SetDoc(doc)
	return o
}

package booktest

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Noon is when a Book begins, unless its options set another time.
var Noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// Options configure a Book.
type Options struct {
	Streams []postgres.StreamSpec
	// Config is the configuration that the recorder notes, as JSON. The default includes everything.
	Config string
	// Begin is when the Book begins. The default is Noon.
	Begin time.Time
	// RV is the resource version before the first. The default is 100.
	RV int
}

// A Book writes a record. When it begins, no list has ended.
type Book struct {
	// DB is the database. It is nil if NewOn made the Book.
	DB   *pgtest.Database
	Sink *postgres.Sink
	// Config is the configuration with which each recorder opens the record.
	Config postgres.Config
	Now    time.Time
	// Lag is the time from observation to commit.
	Lag time.Duration
	// RV is the newest resource version of the server.
	RV int

	t       testing.TB
	specs   []postgres.StreamSpec
	streams map[string]*postgres.Stream
	live    map[string]map[string]*Object // by stream and key
	uids    int
}

// New begins a Book in a database of its own.
func New(t testing.TB, o Options) *Book {
	t.Helper()
	db := pgtest.New(t, pgtest.EmptyRecord)
	b := NewOn(t, db.URL(), o)
	b.DB = db
	return b
}

// NewOn begins a Book on an empty record, such as a copy of a template. The Book has no DB. A template can be copied
// after the Book is closed.
func NewOn(t testing.TB, url string, o Options) *Book {
	t.Helper()
	b := &Book{t: t, Now: o.Begin, RV: cmp.Or(o.RV, 100), specs: slices.Clone(o.Streams), live: map[string]map[string]*Object{}}
	if b.Now.IsZero() {
		b.Now = Noon
	}
	b.Config = postgres.Config{
		URL: url, ClusterUID: "11111111-2222-3333-4444-555555555555", ClusterName: "test", Recorder: "test", Version: "v0",
		ConfigJSON: []byte(cmp.Or(o.Config, `{"include":[],"exclude":[]}`)), Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return b.Now.Add(b.Lag) },
	}
	b.Open()
	return b
}

// Open starts a recorder, or restarts it. The sink is closed at the end of the test at the latest.
func (b *Book) Open() {
	b.t.Helper()
	var err error
	b.Sink, err = postgres.Open(context.Background(), b.Config)
	require.NoError(b.t, err)
	b.t.Cleanup(b.Sink.Close)
	require.NoError(b.t, b.Sink.RecordPause(context.Background(), time.Time{}))
	b.streams = map[string]*postgres.Stream{}
	for _, spec := range b.specs {
		b.open(spec)
	}
}

// Follow adds a stream.
func (b *Book) Follow(spec postgres.StreamSpec) {
	b.t.Helper()
	b.specs = append(b.specs, spec)
	b.open(spec)
}

func (b *Book) open(spec postgres.StreamSpec) {
	b.t.Helper()
	st, err := b.Sink.Stream(context.Background(), spec)
	require.NoError(b.t, err)
	name := nameOf(spec)
	b.streams[name] = st
	if b.live[name] == nil {
		b.live[name] = map[string]*Object{}
	}
}

// Close stops the recorder.
func (b *Book) Close() { b.Sink.Close() }

// Pause stops the recorder, and restarts it after d.
func (b *Book) Pause(d time.Duration) {
	b.t.Helper()
	b.Close()
	b.Now = b.Now.Add(d)
	b.Open()
}

// nameOf returns the name of a stream in a Book: its resource, and its scope if it has one.
func nameOf(spec postgres.StreamSpec) string {
	if spec.Scope != "" {
		return spec.Resource + "/" + spec.Scope
	}
	return spec.Resource
}

// Names returns the names of its streams, in the order in which they began.
func (b *Book) Names() (names []string) {
	for _, spec := range b.specs {
		names = append(names, nameOf(spec))
	}
	return names
}

// Stream returns one of its streams.
func (b *Book) Stream(name string) *postgres.Stream {
	b.t.Helper()
	st := b.streams[name]
	require.NotNil(b.t, st, "the book has no stream %s", name)
	return st
}

func (b *Book) spec(name string) postgres.StreamSpec {
	b.t.Helper()
	i := slices.IndexFunc(b.specs, func(s postgres.StreamSpec) bool { return nameOf(s) == name })
	require.NotEqual(b.t, -1, i, "the book has no stream %s", name)
	return b.specs[i]
}

// Commit writes items in one transaction. An item without an observation time was observed now.
func (b *Book) Commit(items ...postgres.Item) *postgres.Batch {
	b.t.Helper()
	batch, err := b.Try(items...)
	require.NoError(b.t, err)
	return batch
}

// Try is Commit for a commit that may fail, for example because another recorder has taken over.
func (b *Book) Try(items ...postgres.Item) (*postgres.Batch, error) {
	b.t.Helper()
	for i := range items {
		if items[i].Observed.IsZero() {
			items[i].Observed = b.Now
		}
		items[i].Version = "v1"
	}
	batch, err := b.Sink.Encode(items)
	require.NoError(b.t, err)
	return batch, b.Sink.Commit(context.Background(), batch)
}

// LedBy sets the leader of the cluster, and the time of its last renewal, in SQL.
func (b *Book) LedBy(recorder, at string) {
	b.t.Helper()
	b.DB.Exec(b.t, `INSERT INTO kuberewind.leaders (cluster_uid, holder, token, term, renewed_at) VALUES ('`+b.Config.ClusterUID+`', '`+recorder+`', '', '6s', `+at+`)
		ON CONFLICT (cluster_uid) DO UPDATE SET holder = excluded.holder, renewed_at = excluded.renewed_at`)
}

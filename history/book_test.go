package history

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A thing is a version of an object as a server could serve it.
type thing struct {
	namespace, name, uid, rv string
	doc                      patch.Doc
}

func (o *thing) GetNamespace() string       { return o.namespace }
func (o *thing) GetName() string            { return o.name }
func (o *thing) GetUID() types.UID          { return types.UID(o.uid) }
func (o *thing) GetResourceVersion() string { return o.rv }
func (o *thing) Doc() patch.Doc             { return o.doc }

func newThing(t testing.TB, namespace, name, uid string, rv int, spec string) *thing {
	meta := map[string]string{"name": name, "uid": uid, "resourceVersion": strconv.Itoa(rv)}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	text, err := json.Marshal(meta)
	require.NoError(t, err)
	doc, err := patch.Canonical(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Thing","metadata":%s,"spec":%s}`, text, spec))
	require.NoError(t, err)
	return &thing{namespace: namespace, name: name, uid: uid, rv: strconv.Itoa(rv), doc: doc}
}

// A page is one delta as it was given to the sink: the truth for the record.
type page struct {
	seq                int64
	stream             int32
	kind               delta.Type
	source             delta.Source
	observed, occurred time.Time
	rv                 string
	thing              *thing // the last version, for an inferred delete
}

// A book is a record that is being written, with everything that was written.
type book struct {
	t       testing.TB
	db      *pgtest.Database
	config  postgres.Config
	sink    *postgres.Sink
	now     time.Time
	rv      int
	uids    int
	streams []*postgres.Stream
	live    []map[string]*thing // by stream
	pages   []page
}

var tuesday = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// newBook begins to record streams that hold nothing yet.
func newBook(t testing.TB, streams int) *book {
	t.Helper()
	db := pgtest.New(t, pgtest.EmptyRecord)
	b := newBookOn(t, db.URL(), streams)
	b.db = db
	t.Cleanup(func() { b.sink.Close() })
	return b
}

func newBookOn(t testing.TB, url string, streams int) *book {
	t.Helper()
	b := &book{t: t, now: tuesday, rv: 10}
	b.config = postgres.Config{
		URL: url, ClusterUID: "11111111-2222-3333-4444-555555555555", ClusterName: "test", Recorder: "test", Version: "v0",
		ConfigJSON: []byte(`{"include":[],"exclude":[]}`), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return b.now },
	}
	b.live = make([]map[string]*thing, streams)
	for i := range b.live {
		b.live[i] = make(map[string]*thing)
	}
	b.open()
	for i := range b.streams {
		b.list(i, "first_list", "list")
	}
	return b
}

func (b *book) open() {
	b.t.Helper()
	var err error
	b.sink, err = postgres.Open(context.Background(), b.config)
	require.NoError(b.t, err)
	require.NoError(b.t, b.sink.RecordPause(context.Background(), time.Time{}))
	b.streams = nil
	for i := range b.live {
		st, err := b.sink.Stream(context.Background(), postgres.StreamSpec{
			Group: "example.com", Resource: fmt.Sprintf("things%d", i), Kind: "Thing", Version: "v1", Namespaced: true,
		})
		require.NoError(b.t, err)
		b.streams = append(b.streams, st)
	}
}

// pause is a recorder that stops and comes back.
func (b *book) pause(d time.Duration) {
	b.sink.Close()
	b.now = b.now.Add(d)
	b.open()
}

func (b *book) record(t testing.TB) *Record {
	t.Helper()
	r, err := Open(t.Context(), b.db.URL(), Options{})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func (b *book) commit(items ...postgres.Item) {
	b.t.Helper()
	for i := range items {
		if items[i].Observed.IsZero() {
			items[i].Observed = b.now
		}
		items[i].Version = "v1"
	}
	batch, err := b.sink.Encode(items)
	require.NoError(b.t, err)
	require.NoError(b.t, b.sink.Commit(context.Background(), batch))
	require.Equal(b.t, int64(len(b.pages)), batch.LastSeq(), "each item that was counted on is a delta")
}

func (b *book) item(stream int, kind delta.Type, source delta.Source, o *thing) postgres.Item {
	b.pages = append(b.pages, page{
		seq: int64(len(b.pages) + 1), stream: b.streams[stream].ID(), kind: kind, source: source, observed: b.now, occurred: b.now, rv: o.rv, thing: o,
	})
	return postgres.Item{Stream: b.streams[stream].ID(), Kind: postgres.Delta, Type: kind, Source: source, Object: o}
}

func (b *book) uid() string {
	b.uids++
	return fmt.Sprintf("%08d-0000-4000-8000-000000000000", b.uids)
}

func key(namespace, name string) string { return namespace + "/" + name }

// set creates or updates an object, seen by the watch.
func (b *book) set(stream int, namespace, name, spec string) postgres.Item {
	b.rv++
	kind := delta.Added
	var uid string
	if o := b.live[stream][key(namespace, name)]; o != nil {
		uid, kind = o.uid, delta.Updated
	} else {
		uid = b.uid()
	}
	o := newThing(b.t, namespace, name, uid, b.rv, spec)
	b.live[stream][key(namespace, name)] = o
	it := b.item(stream, kind, delta.SourceWatch, o)
	it.Position = o.rv
	return it
}

func (b *book) remove(stream int, namespace, name string) postgres.Item {
	b.rv++
	o := b.live[stream][key(namespace, name)]
	o = newThing(b.t, namespace, name, o.uid, b.rv, `{"deleted":true}`)
	delete(b.live[stream], key(namespace, name))
	it := b.item(stream, delta.Deleted, delta.SourceWatch, o)
	it.Position = o.rv
	return it
}

// vanish is a delete that only a list shows.
func (b *book) vanish(stream int, namespace, name string) postgres.Item {
	o := b.live[stream][key(namespace, name)]
	delete(b.live[stream], key(namespace, name))
	b.again(stream, o)
	it := b.item(stream, delta.Deleted, delta.SourceInferred, o)
	it.Object, it.Key, it.UID, it.RV = nil, key(namespace, name), o.GetUID(), strconv.Itoa(b.rv)
	b.pages[len(b.pages)-1].rv = it.RV
	return it
}

// again expects the keyframe that comes before an inferred delete which would be the only row of its life in a day.
func (b *book) again(stream int, o *thing) {
	for i := len(b.pages) - 1; i >= 0; i-- {
		if p := &b.pages[i]; p.thing.uid == o.uid {
			if p.observed.UTC().Format(time.DateOnly) != b.now.UTC().Format(time.DateOnly) {
				b.item(stream, delta.Sync, delta.SourceResync, o)
			}
			return
		}
	}
}

// list ends a gap with what is live on the server, in things of the caller's or none.
func (b *book) list(stream int, cause delta.Cause, source delta.Source, items ...postgres.Item) {
	b.t.Helper()
	b.commit(append(items, postgres.Item{
		Stream: b.streams[stream].ID(), Kind: postgres.Marked, Source: source, Position: strconv.Itoa(b.rv),
		Marker: delta.Marker{Kind: delta.Replaced, Cause: cause, ToRV: strconv.Itoa(b.rv)},
	})...)
}

// liveAt is the truth of an instant: of each name the object whose newest page belongs to it.
func (b *book) liveAt(belongs func(*page) bool) map[string]string {
	live := make(map[string]string)
	uids := make(map[string]string)
	for i := range b.pages {
		p := &b.pages[i]
		if !belongs(p) {
			continue
		}
		name := fmt.Sprint(p.stream, " ", key(p.thing.namespace, p.thing.name))
		if p.kind == delta.Deleted {
			if uids[name] == p.thing.uid {
				delete(live, name)
			}
			continue
		}
		live[name], uids[name] = string(p.thing.doc), p.thing.uid
	}
	return live
}

func bySeq(seq int64) func(*page) bool { return func(p *page) bool { return p.seq <= seq } }

// rebuilt is what a rebuild gives.
func rebuilt(t testing.TB, r *Record, p Point, scope Scope, o RebuildOptions) (map[string]string, RebuildStats) {
	t.Helper()
	var mu sync.Mutex
	live := make(map[string]string)
	stats, err := r.Rebuild(t.Context(), p, scope, o, func(o Object) error {
		mu.Lock()
		defer mu.Unlock()
		name := fmt.Sprint(o.Stream.ID, " ", key(o.Namespace, o.Name))
		require.NotContains(t, live, name, "each object comes once")
		live[name] = string(o.Doc)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, int64(len(live)), stats.Objects)
	return live, stats
}

func resolved(t testing.TB, r *Record, at Instant, scope Scope) Point {
	t.Helper()
	p, err := r.Resolve(t.Context(), at, scope)
	require.NoError(t, err)
	return p
}

func kinds(notes []Note) []NoteKind {
	var kinds []NoteKind
	for _, n := range notes {
		kinds = append(kinds, n.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// specs are what objects are made of: some that jsonb cannot hold, some large.
func specs(rnd *rand.Rand) string {
	switch rnd.IntN(8) {
	case 0:
		return `{"a":"\u0000"}`
	case 1:
		return `{"n":9007199254740993,"x":"<&>"}`
	case 2:
		return fmt.Sprintf(`{"list":[1,2,%d],"b":{"c":null}}`, rnd.IntN(100))
	default:
		return fmt.Sprintf(`{"a":%d,"b":"%030d","c":{"d":[{"name":"x","image":"v%d"}]}}`, rnd.IntN(10), rnd.IntN(3), rnd.IntN(1000))
	}
}

// scribble writes n batches of random history, over several days.
func (b *book) scribble(rnd *rand.Rand, batches int) {
	b.t.Helper()
	for range batches {
		var items []postgres.Item
		for range 1 + rnd.IntN(12) {
			stream := rnd.IntN(len(b.live))
			namespace, name := string(rune('a'+rnd.IntN(3))), fmt.Sprint("o", rnd.IntN(8))
			if b.live[stream][key(namespace, name)] != nil && rnd.IntN(6) == 0 {
				items = append(items, b.remove(stream, namespace, name))
				continue
			}
			items = append(items, b.set(stream, namespace, name, specs(rnd)))
		}
		b.commit(items...)
		b.now = b.now.Add(time.Duration(rnd.IntN(int(2 * time.Hour)))).Truncate(time.Microsecond)
	}
}

// sweep relists a stream: some objects have vanished, some have changed, some are new under their name.
func (b *book) sweep(rnd *rand.Rand, stream int) {
	b.t.Helper()
	b.commit(postgres.Item{Stream: b.streams[stream].ID(), Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: "expired"}})
	b.now = b.now.Add(time.Minute)
	b.rv += 5
	var items []postgres.Item
	for _, name := range slices.Sorted(maps.Keys(b.live[stream])) {
		o := b.live[stream][name]
		switch rnd.IntN(4) {
		case 0:
			items = append(items, b.vanish(stream, o.namespace, o.name))
		case 1:
			o = newThing(b.t, o.namespace, o.name, o.uid, b.rv-rnd.IntN(4), specs(rnd))
			b.live[stream][name] = o
			items = append(items, b.item(stream, delta.Sync, delta.SourceRelist, o))
		}
	}
	b.list(stream, "expired", delta.SourceRelist, items...)
}

func (b *book) checkpointer(t testing.TB, o checkpoint.Options) *checkpoint.Maker {
	t.Helper()
	if o.Busy == 0 {
		o.Busy = 1
	}
	pool, cluster := b.db.Pool(t), Cluster{Number: b.sink.Info().Cluster, Name: "test"}
	return checkpoint.NewMaker(pool, cluster.Number, Of(pool, cluster).Source(), o)
}

package history

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A page is one delta as the test gave it to the sink: the expected content of the record.
type page struct {
	seq                int64
	stream             int32
	kind               delta.Type
	source             delta.Source
	observed, occurred time.Time
	rv                 string
	thing              *booktest.Object // the last version, for an inferred delete
}

// A book is a record of numbered streams that a test writes, together with every delta that it wrote.
type book struct {
	*booktest.Book
	t     testing.TB
	pages []page
}

// newBook returns a book with empty streams.
func newBook(t testing.TB, streams int) *book {
	t.Helper()
	b := &book{t: t, Book: booktest.New(t, booktest.Options{RV: 10})}
	for range streams {
		b.follow()
	}
	return b
}

// follow adds a stream whose first list is empty.
func (b *book) follow() {
	b.t.Helper()
	stream := len(b.Names())
	b.Follow(postgres.StreamSpec{Group: "example.com", Resource: things(stream), Kind: "Thing", Version: "v1", Namespaced: true})
	b.list(stream, delta.CauseFirstList, delta.SourceList)
}

// things returns the resource of a stream.
func things(stream int) string { return fmt.Sprint("things", stream) }

func (b *book) record(t testing.TB) *Record {
	t.Helper()
	r, err := Open(t.Context(), b.DB.URL(), Options{})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func (b *book) commit(items ...postgres.Item) {
	b.t.Helper()
	batch := b.Commit(items...)
	require.Equal(b.t, int64(len(b.pages)), batch.LastSeq(), "each expected item is a delta")
}

// note adds the page of an item about o.
func (b *book) note(o *booktest.Object, it postgres.Item) postgres.Item {
	b.pages = append(b.pages, page{
		seq: int64(len(b.pages) + 1), stream: it.Stream, kind: it.Type, source: it.Source, observed: b.Now, occurred: b.Now, rv: cmp.Or(it.RV, o.RV), thing: o,
	})
	return it
}

// next returns the next version of an object on the server.
func (b *book) next(stream int, namespace, name, spec string) *booktest.Object {
	b.t.Helper()
	return b.Next(things(stream), namespace, name, b.UID(things(stream), namespace, name), "", `,"spec":`+spec)
}

// older returns a version of an object with an older resource version.
func (b *book) older(rv, stream int, namespace, name, spec string) *booktest.Object {
	b.t.Helper()
	return b.At(rv, things(stream), namespace, name, b.UID(things(stream), namespace, name), "", `,"spec":`+spec)
}

// set creates or updates an object, as the watch shows it.
func (b *book) set(stream int, namespace, name, spec string) postgres.Item {
	b.t.Helper()
	o := b.next(stream, namespace, name, spec)
	return b.note(o, b.Set(things(stream), o))
}

func (b *book) remove(stream int, namespace, name string) postgres.Item {
	b.t.Helper()
	o := b.next(stream, namespace, name, `{"deleted":true}`)
	return b.note(o, b.Remove(things(stream), o))
}

// found records a version that only a list shows.
func (b *book) found(stream int, o *booktest.Object) postgres.Item {
	b.t.Helper()
	return b.note(o, b.Found(things(stream), o))
}

// vanish records a delete that only a list shows.
func (b *book) vanish(stream int, namespace, name string) postgres.Item {
	b.t.Helper()
	o := b.live(stream, namespace, name)
	b.again(stream, o)
	return b.note(o, b.Vanished(things(stream), o))
}

// again expects the extra keyframe that precedes an inferred delete, if the delete would be the only row of its life on a
// day.
func (b *book) again(stream int, o *booktest.Object) {
	for i := len(b.pages) - 1; i >= 0; i-- {
		if p := &b.pages[i]; p.thing.UID == o.UID {
			if p.observed.UTC().Format(time.DateOnly) != b.Now.UTC().Format(time.DateOnly) {
				b.note(o, b.Item(things(stream), delta.Sync, delta.SourceResync, o))
			}
			return
		}
	}
}

// live returns a live object.
func (b *book) live(stream int, namespace, name string) *booktest.Object {
	return b.Live(things(stream), booktest.Key(namespace, name))
}

// list ends a gap with a list. items are its deltas, if any.
func (b *book) list(stream int, cause delta.Cause, source delta.Source, items ...postgres.Item) {
	b.t.Helper()
	b.commit(append(items, b.Listed(things(stream), cause, source))...)
}

// liveAt returns the expected objects of an instant: for each name, the object whose newest page belongs to it.
func (b *book) liveAt(belongs func(*page) bool) map[string]string {
	live := make(map[string]string)
	uids := make(map[string]string)
	for i := range b.pages {
		p := &b.pages[i]
		if !belongs(p) {
			continue
		}
		name := fmt.Sprint(p.stream, " ", p.thing.Key())
		if p.kind == delta.Deleted {
			if uids[name] == p.thing.UID {
				delete(live, name)
			}
			continue
		}
		live[name], uids[name] = string(p.thing.Content), p.thing.UID
	}
	return live
}

func bySeq(seq int64) func(*page) bool { return func(p *page) bool { return p.seq <= seq } }

// rebuilt returns the result of a rebuild.
func rebuilt(t testing.TB, r *Record, p Point, scope Scope, o RebuildOptions) (map[string]string, RebuildStats) {
	t.Helper()
	var mu sync.Mutex
	live := make(map[string]string)
	stats, err := r.Rebuild(t.Context(), p, scope, o, func(o Object) error {
		mu.Lock()
		defer mu.Unlock()
		name := fmt.Sprint(o.Stream.ID, " ", booktest.Key(o.Namespace, o.Name))
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

// specs returns a random spec: some cannot be stored in jsonb, some are large.
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

// scribble writes random history in n batches, over several days.
func (b *book) scribble(rnd *rand.Rand, batches int) {
	b.t.Helper()
	for range batches {
		var items []postgres.Item
		for range 1 + rnd.IntN(12) {
			stream := rnd.IntN(len(b.Names()))
			namespace, name := string(rune('a'+rnd.IntN(3))), fmt.Sprint("o", rnd.IntN(8))
			if b.live(stream, namespace, name) != nil && rnd.IntN(6) == 0 {
				items = append(items, b.remove(stream, namespace, name))
				continue
			}
			items = append(items, b.set(stream, namespace, name, specs(rnd)))
		}
		b.commit(items...)
		b.Now = b.Now.Add(time.Duration(rnd.IntN(int(2 * time.Hour)))).Truncate(time.Microsecond)
	}
}

// sweep lists a stream again: some objects have vanished, some have changed.
func (b *book) sweep(rnd *rand.Rand, stream int) {
	b.t.Helper()
	b.commit(b.Interrupted(things(stream), delta.CauseExpired))
	b.Now = b.Now.Add(time.Minute)
	b.RV += 5
	var items []postgres.Item
	for _, o := range b.AllLive(things(stream)) {
		switch rnd.IntN(4) {
		case 0:
			items = append(items, b.vanish(stream, o.Namespace, o.Name))
		case 1:
			items = append(items, b.found(stream, b.older(b.RV-rnd.IntN(4), stream, o.Namespace, o.Name, specs(rnd))))
		}
	}
	b.list(stream, "expired", delta.SourceRelist, items...)
}

func (b *book) checkpointer(t testing.TB, o checkpoint.Options) *checkpoint.Maker {
	t.Helper()
	if o.Busy == 0 {
		o.Busy = 1
	}
	pool, cluster := b.DB.Pool(t), Cluster{Number: b.Sink.Info().Cluster, Name: "test"}
	return checkpoint.NewMaker(pool, cluster.Number, Of(pool, cluster).Source(), o)
}

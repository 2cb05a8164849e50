package apiserver_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A pen writes a record of numbered streams. Its clock advances with each commit.
type pen struct {
	*testing.T
	*booktest.Book
	leader string // the chosen recorder
	ends   []int  // the versions of the last end, by stream
}

type penItem = postgres.Item

// penResources are the resources that a pen writes.
var penResources = []struct{ resource, kind string }{{"configmaps", "ConfigMap"}, {"pods", "Pod"}, {"services", "Service"}}

// newPen begins a record of empty streams.
func newPen(t *testing.T) *pen {
	t.Helper()
	return newPenOf(t, 0)
}

// newPenOf begins a record that ended some time ago.
func newPenOf(t *testing.T, ago time.Duration) *pen {
	t.Helper()
	begin := time.Now().Add(-ago).UTC().Truncate(time.Microsecond)
	p := &pen{T: t, Book: booktest.New(t, booktest.Options{Config: `{}`, Begin: begin, RV: 10}), leader: "test"}
	p.leads("now() + interval '1 hour'") // as if the recorder renewed its lease
	for _, r := range penResources {
		p.follow(postgres.StreamSpec{Resource: r.resource, Kind: r.kind, Version: "v1", Namespaced: true})
	}
	return p
}

// choose makes another recorder the chosen one, which has not opened the record yet.
func (p *pen) choose() { p.leader = "next" }

// follow adds a stream.
func (p *pen) follow(spec postgres.StreamSpec) (stream int) {
	p.Helper()
	p.Follow(spec)
	stream = len(p.Names()) - 1
	p.list(stream, "first_list")
	return stream
}

// of returns the resource of a stream.
func (p *pen) of(stream int) string { return p.Names()[stream] }

// leads sets when the recorder last renewed its lease.
func (p *pen) leads(at string) {
	p.Helper()
	p.LedBy(p.leader, at)
}

func (p *pen) record() *history.Record {
	p.Helper()
	r, err := history.Open(p.Context(), p.DB.URL(), history.Options{})
	require.NoError(p, err)
	p.Cleanup(r.Close)
	return r
}

func (p *pen) commit(items ...postgres.Item) {
	p.Helper()
	p.Now = p.Now.Add(time.Millisecond)
	p.Commit(items...)
}

// changed returns the next version of an object on the server. data begins with the value of its label side.
func (p *pen) changed(stream int, namespace, name, data string) *booktest.Object {
	p.Helper()
	return p.Next(p.of(stream), namespace, name, p.UID(p.of(stream), namespace, name), fmt.Sprintf(`"labels":{"side":%q},`, data[:1]), fmt.Sprintf(`,"data":{"text":%q}`, data))
}

// set creates or changes an object. data begins with the value of its label side.
func (p *pen) set(stream int, namespace, name, data string) postgres.Item {
	p.Helper()
	return p.Set(p.of(stream), p.changed(stream, namespace, name, data))
}

func (p *pen) remove(stream int, o *booktest.Object) postgres.Item {
	p.Helper()
	return p.Remove(p.of(stream), p.changed(stream, o.Namespace, o.Name, "z"))
}

// interrupt begins a gap of a stream.
func (p *pen) interrupt(stream int) {
	p.Helper()
	p.commit(p.Interrupted(p.of(stream), delta.CauseExpired))
}

// list closes the gap of a stream with the items of a list.
func (p *pen) list(stream int, cause delta.Cause, items ...postgres.Item) {
	p.Helper()
	end := p.Listed(p.of(stream), cause, delta.SourceRelist)
	end.Marker.Changed = len(items)
	p.commit(append(items, end)...)
}

// listed returns a version that only the list shows.
func (p *pen) listed(stream int, namespace, name, data string) postgres.Item {
	p.Helper()
	return p.Found(p.of(stream), p.changed(stream, namespace, name, data))
}

// vanished returns the deletion of an object that was missing in the list.
func (p *pen) vanished(stream int, o *booktest.Object) postgres.Item {
	p.Helper()
	p.RV++
	return p.Vanished(p.of(stream), o)
}

// change returns a random write.
func (p *pen) change(random *rand.Rand, stream int) postgres.Item {
	p.Helper()
	namespace, name := string(rune('a'+random.IntN(2))), fmt.Sprint("o", random.IntN(6))
	if o := p.Live(p.of(stream), booktest.Key(namespace, name)); o != nil && random.IntN(5) == 0 {
		return p.remove(stream, o)
	}
	return p.set(stream, namespace, name, fmt.Sprint(string(rune('l'+random.IntN(2))), random.IntN(1000)))
}

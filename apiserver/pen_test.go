package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A pen writes a record as a recorder does: it is the model of the cluster, too.
type pen struct {
	*testing.T
	database *pgtest.Database
	sink     *postgres.Sink
	leader   string // who was chosen to record
	streams  []*postgres.Stream
	kinds    []string            // by stream
	live     []map[string]*thing // by stream and key
	rv, uid  int
	now      time.Time
	lag      time.Duration // from observation to commit
	ends     []int         // the versions of the last end, by stream
}

type penItem = postgres.Item

// penResources are what it writes.
var penResources = []struct{ resource, kind string }{{"configmaps", "ConfigMap"}, {"pods", "Pod"}, {"services", "Service"}}

type thing struct {
	namespace, name, uid, rv string
	doc                      patch.Doc
}

func (o *thing) GetNamespace() string       { return o.namespace }
func (o *thing) GetName() string            { return o.name }
func (o *thing) GetUID() types.UID          { return types.UID(o.uid) }
func (o *thing) GetResourceVersion() string { return o.rv }
func (o *thing) Doc() patch.Doc             { return o.doc }
func (o *thing) key() string                { return o.namespace + "/" + o.name }

// newPen begins a record of streams that hold nothing yet.
func newPen(t *testing.T) *pen {
	t.Helper()
	return newPenOf(t, 0)
}

// newPenOf begins one that ends some time ago.
func newPenOf(t *testing.T, ago time.Duration) *pen {
	t.Helper()
	p := &pen{T: t, database: pgtest.New(t, pgtest.EmptyRecord), rv: 10, now: time.Now().Add(-ago).UTC().Truncate(time.Microsecond), leader: "test"}
	p.open()
	p.leads("now() + interval '1 hour'") // as if it went on to say so
	for _, r := range penResources {
		p.follow(postgres.StreamSpec{Resource: r.resource, Kind: r.kind, Version: "v1", Namespaced: true})
	}
	return p
}

// open opens the record as a recorder does that was chosen: what came before has another epoch.
func (p *pen) open() {
	p.Helper()
	var err error
	p.sink, err = postgres.Open(p.Context(), postgres.Config{
		URL: p.database.URL(), ClusterUID: "11111111-2222-3333-4444-555555555555", ClusterName: "test", Recorder: "test", Version: "v0",
		ConfigJSON: []byte(`{}`), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return p.now.Add(p.lag) },
	})
	require.NoError(p, err)
	p.Cleanup(p.sink.Close)
}

// choose has another recorder chosen, which has not opened the record yet.
func (p *pen) choose() { p.leader = "next" }

// follow adds a stream.
func (p *pen) follow(spec postgres.StreamSpec) (stream int) {
	p.Helper()
	s, err := p.sink.Stream(p.Context(), spec)
	require.NoError(p, err)
	p.streams, p.live, p.kinds = append(p.streams, s), append(p.live, map[string]*thing{}), append(p.kinds, spec.Kind)
	p.list(len(p.streams)-1, "first_list")
	return len(p.streams) - 1
}

// leads says when the recorder said last that it records.
func (p *pen) leads(at string) {
	p.Helper()
	p.database.Exec(p.T, `INSERT INTO kuberewind.leaders (cluster_uid, holder, token, term, renewed_at) SELECT uid, '`+p.leader+`', '', '6s', `+at+`
		FROM kuberewind.clusters ON CONFLICT (cluster_uid) DO UPDATE SET holder = excluded.holder, renewed_at = excluded.renewed_at`)
}

func (p *pen) record() *history.Record {
	p.Helper()
	r, err := history.Open(p.Context(), p.database.URL(), history.Options{})
	require.NoError(p, err)
	p.Cleanup(r.Close)
	return r
}

func (p *pen) commit(items ...postgres.Item) {
	p.Helper()
	p.now = p.now.Add(time.Millisecond)
	for i := range items {
		items[i].Observed, items[i].Version = p.now, "v1"
	}
	batch, err := p.sink.Encode(items)
	require.NoError(p, err)
	require.NoError(p, p.sink.Commit(context.WithoutCancel(p.Context()), batch))
}

func (p *pen) thing(stream int, namespace, name, uid, data string) *thing {
	p.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": p.kinds[stream], "data": map[string]string{"text": data},
		"metadata": map[string]any{"namespace": namespace, "name": name, "uid": uid, "resourceVersion": strconv.Itoa(p.rv), "labels": map[string]string{"side": data[:1]}},
	})
	require.NoError(p, err)
	doc, err := patch.Canonical(text)
	require.NoError(p, err)
	return &thing{namespace: namespace, name: name, uid: uid, rv: strconv.Itoa(p.rv), doc: doc}
}

// set creates or changes an object. data begins with its label side.
func (p *pen) set(stream int, namespace, name, data string) postgres.Item {
	p.Helper()
	o := p.changed(stream, namespace, name, data)
	kind := delta.Updated
	if p.live[stream][o.key()] == nil {
		kind = delta.Added
	}
	p.live[stream][o.key()] = o
	return postgres.Item{Stream: p.streams[stream].ID(), Kind: postgres.Delta, Type: kind, Source: delta.SourceWatch, Object: o, Position: o.rv}
}

// changed is the next version of an object on the server.
func (p *pen) changed(stream int, namespace, name, data string) *thing {
	p.Helper()
	p.rv++
	p.uid++
	uid := fmt.Sprintf("%08d-0000-4000-8000-000000000000", p.uid)
	if o := p.live[stream][namespace+"/"+name]; o != nil {
		uid = o.uid
	}
	return p.thing(stream, namespace, name, uid, data)
}

func (p *pen) remove(stream int, o *thing) postgres.Item {
	p.Helper()
	p.rv++
	delete(p.live[stream], o.key())
	last := p.thing(stream, o.namespace, o.name, o.uid, "z")
	return postgres.Item{Stream: p.streams[stream].ID(), Kind: postgres.Delta, Type: delta.Deleted, Source: delta.SourceWatch, Object: last, Position: last.rv}
}

// interrupt begins a gap of a stream.
func (p *pen) interrupt(stream int) {
	p.Helper()
	p.commit(postgres.Item{Stream: p.streams[stream].ID(), Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: "expired"}})
}

// list closes the gap of a stream, with what the list showed.
func (p *pen) list(stream int, cause delta.Cause, items ...postgres.Item) {
	p.Helper()
	rv := strconv.Itoa(p.rv)
	p.commit(append(items, postgres.Item{
		Stream: p.streams[stream].ID(), Kind: postgres.Marked, Source: delta.SourceRelist, Position: rv,
		Marker: delta.Marker{Kind: delta.Replaced, Cause: cause, ToRV: rv, Changed: len(items)},
	})...)
}

// listed is a version that only the list shows.
func (p *pen) listed(stream int, namespace, name, data string) postgres.Item {
	p.Helper()
	o := p.changed(stream, namespace, name, data)
	p.live[stream][o.key()] = o
	return postgres.Item{Stream: p.streams[stream].ID(), Kind: postgres.Delta, Type: delta.Sync, Source: delta.SourceRelist, Object: o}
}

// vanished is an object that was not on the list.
func (p *pen) vanished(stream int, o *thing) postgres.Item {
	p.rv++
	delete(p.live[stream], o.key())
	return postgres.Item{
		Stream: p.streams[stream].ID(), Kind: postgres.Delta, Type: delta.Deleted, Source: delta.SourceInferred,
		Key: o.key(), UID: types.UID(o.uid), RV: strconv.Itoa(p.rv),
	}
}

// change is a random write.
func (p *pen) change(random *rand.Rand, stream int) postgres.Item {
	p.Helper()
	namespace, name := string(rune('a'+random.IntN(2))), fmt.Sprint("o", random.IntN(6))
	if o := p.live[stream][namespace+"/"+name]; o != nil && random.IntN(5) == 0 {
		return p.remove(stream, o)
	}
	return p.set(stream, namespace, name, fmt.Sprint(string(rune('l'+random.IntN(2))), random.IntN(1000)))
}

package timeline_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// served is a version of an object as a server could serve it.
type served struct {
	namespace, name, uid, rv string
	doc                      patch.Doc
}

func (o *served) GetNamespace() string       { return o.namespace }
func (o *served) GetName() string            { return o.name }
func (o *served) GetUID() types.UID          { return types.UID(o.uid) }
func (o *served) GetResourceVersion() string { return o.rv }
func (o *served) Doc() patch.Doc             { return o.doc }

// A book writes a record. Its clock goes as it is told.
type book struct {
	t       testing.TB
	db      *pgtest.Database
	config  postgres.Config
	sink    *postgres.Sink
	now     time.Time
	rv      int
	streams map[string]*postgres.Stream
}

// noon is when books begin.
var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

var bookResources = []postgres.StreamSpec{
	{Group: "apps", Resource: "deployments", Kind: "Deployment", Version: "v1", Namespaced: true},
	{Resource: "pods", Kind: "Pod", Version: "v1", Namespaced: true},
	{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Namespaced: true},
	{Group: "coordination.k8s.io", Resource: "leases", Kind: "Lease", Version: "v1", Namespaced: true},
	{Resource: "nodes", Kind: "Node", Version: "v1"},
	{Group: "example.com", Resource: "things", Kind: "Thing", Version: "v1", Namespaced: true},
}

func newBook(t testing.TB) *book {
	t.Helper()
	b := &book{t: t, now: noon, rv: 100, streams: map[string]*postgres.Stream{}}
	b.db = pgtest.New(t, pgtest.EmptyRecord)
	b.config = postgres.Config{
		URL: b.db.URL(), ClusterUID: "11111111-2222-3333-4444-555555555555", ClusterName: "test", Recorder: "test", Version: "v0",
		ConfigJSON: []byte(`{"include":[],"exclude":[]}`), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return b.now },
	}
	b.open()
	t.Cleanup(func() { b.sink.Close() })
	return b
}

func (b *book) open() {
	b.t.Helper()
	var err error
	b.sink, err = postgres.Open(context.Background(), b.config)
	require.NoError(b.t, err)
	require.NoError(b.t, b.sink.RecordPause(context.Background(), time.Time{}))
	for _, spec := range bookResources {
		b.streams[spec.Resource], err = b.sink.Stream(context.Background(), spec)
		require.NoError(b.t, err)
	}
}

// pause is a recorder that stops and comes back.
func (b *book) pause(d time.Duration) {
	b.sink.Close()
	b.now = b.now.Add(d)
	b.open()
}

func (b *book) commit(items ...postgres.Item) {
	b.t.Helper()
	for i := range items {
		items[i].Observed, items[i].Version = b.now, "v1"
	}
	batch, err := b.sink.Encode(items)
	require.NoError(b.t, err)
	require.NoError(b.t, b.sink.Commit(context.Background(), batch))
}

// list ends the first list of all resources, with what was there.
func (b *book) list(items ...postgres.Item) {
	b.t.Helper()
	for _, spec := range bookResources {
		items = append(items, b.listed(spec.Resource, "first_list", postgres.SourceList))
	}
	b.commit(items...)
}

func (b *book) listed(resource, cause, source string) postgres.Item {
	return postgres.Item{
		Stream: b.streams[resource].ID(), Kind: postgres.Replaced, Source: source, Position: strconv.Itoa(b.rv),
		Marker: postgres.Marker{Cause: cause, ToRV: strconv.Itoa(b.rv)},
	}
}

func (b *book) interrupted(resource, cause string) postgres.Item {
	return postgres.Item{Stream: b.streams[resource].ID(), Kind: postgres.Interrupted, Marker: postgres.Marker{Cause: cause}}
}

// uidOf is the UID of the only life of a name.
func uidOf(resource, name string) string { return resource + "-" + name }

// owned is metadata that names an owner.
func owned(kind, resource, name string) string {
	return fmt.Sprintf(`"ownerReferences":[{"apiVersion":"v1","kind":%q,"name":%q,"uid":%q,"controller":true}],`, kind, name, uidOf(resource, name))
}

// delta is one of an object in shop, or of a Node. metadata and fields are JSON, such as "labels":{}, and ,"spec":{}.
func (b *book) delta(kind, source, resource, name, metadata, fields string) postgres.Item {
	b.t.Helper()
	b.rv++
	o := &served{name: name, uid: uidOf(resource, name), rv: strconv.Itoa(b.rv)}
	if resource != "nodes" {
		o.namespace = "shop"
		metadata += `"namespace":"shop",`
	}
	doc, err := patch.Canonical(fmt.Appendf(nil, `{"metadata":{%s"name":%q,"uid":%q,"resourceVersion":%q}%s}`, metadata, name, o.uid, o.rv, fields))
	require.NoError(b.t, err)
	o.doc = doc
	it := postgres.Item{Stream: b.streams[resource].ID(), Kind: postgres.Delta, Type: kind, Source: source, Object: o}
	if source == postgres.SourceWatch {
		it.Position = o.rv
	}
	return it
}

// watched commits a delta that a watch told of.
func (b *book) watched(kind, resource, name, metadata, fields string) {
	b.t.Helper()
	b.commit(b.delta(kind, postgres.SourceWatch, resource, name, metadata, fields))
}

// lose detaches the partition of a day.
func (b *book) lose(day time.Time) {
	b.t.Helper()
	b.db.Exec(b.t, "ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p"+day.Format("20060102"))
}

// scene serves what is written.
func (b *book) scene(patience time.Duration) *scene {
	b.t.Helper()
	t := b.t.(*testing.T)
	s := &scene{database: b.db}
	var err error
	s.record, err = history.Open(t.Context(), b.db.Login(t, "kuberewind_auditor"), history.Options{})
	require.NoError(t, err)
	t.Cleanup(s.record.Close)
	s.serve(t, patience)
	return s
}

// end is the instant of the last delta. The instant now would be long after it.
func (s *scene) end() url.Values {
	return url.Values{"at": {"seq:" + strconv.FormatInt(s.extent.LastSeq, 10)}}
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

package timelinetest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A Version is one of an object, as a server could serve it.
type Version struct {
	Namespace, Name, UID, RV string
	Content                  patch.Doc
}

// GetNamespace is the namespace, "" of a Node.
func (v *Version) GetNamespace() string { return v.Namespace }

// GetName is the name.
func (v *Version) GetName() string { return v.Name }

// GetUID is the UID.
func (v *Version) GetUID() types.UID { return types.UID(v.UID) }

// GetResourceVersion is the resource version.
func (v *Version) GetResourceVersion() string { return v.RV }

// Doc is the object in canonical form.
func (v *Version) Doc() patch.Doc { return v.Content }

// Be gives the version another UID: what is made anew under a name is another life.
func (v *Version) Be(uid string) {
	v.Content = patch.Doc(strings.Replace(string(v.Content), fmt.Sprintf(`"uid":%q`, v.UID), fmt.Sprintf(`"uid":%q`, uid), 1))
	v.UID = uid
}

// A Book writes a record. Its clock goes as it is told.
type Book struct {
	DB  *pgtest.Database
	Now time.Time

	t       testing.TB
	config  postgres.Config
	sink    *postgres.Sink
	rv      int
	streams map[string]*postgres.Stream
}

// Noon is when a Book begins.
var Noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// Namespace is that of all objects of a Book but Nodes.
const Namespace = "shop"

var resources = []postgres.StreamSpec{
	{Group: "apps", Resource: "deployments", Kind: "Deployment", Version: "v1", Namespaced: true},
	{Resource: "pods", Kind: "Pod", Version: "v1", Namespaced: true},
	{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Namespaced: true},
	{Group: "coordination.k8s.io", Resource: "leases", Kind: "Lease", Version: "v1", Namespaced: true},
	{Resource: "nodes", Kind: "Node", Version: "v1"},
	{Group: "example.com", Resource: "things", Kind: "Thing", Version: "v1", Namespaced: true},
}

// NewBook begins a Book at Noon, in a database of its own. No list has ended yet.
func NewBook(t testing.TB) *Book {
	t.Helper()
	db := pgtest.New(t, pgtest.EmptyRecord)
	b := NewBookOn(t, db.URL())
	b.DB = db
	t.Cleanup(b.Close)
	return b
}

// NewBookOn begins a Book on an empty record, such as that of a template. It has no DB, and has to be closed.
func NewBookOn(t testing.TB, url string) *Book {
	t.Helper()
	b := &Book{t: t, Now: Noon, rv: 100, streams: map[string]*postgres.Stream{}}
	b.config = postgres.Config{
		URL: url, ClusterUID: "11111111-2222-3333-4444-555555555555", ClusterName: "test", Recorder: "test", Version: "v0",
		ConfigJSON: []byte(`{"include":[],"exclude":[]}`), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return b.Now },
	}
	b.Open()
	return b
}

// Open is a recorder that begins, or comes back.
func (b *Book) Open() {
	b.t.Helper()
	var err error
	b.sink, err = postgres.Open(context.Background(), b.config)
	require.NoError(b.t, err)
	require.NoError(b.t, b.sink.RecordPause(context.Background(), time.Time{}))
	for _, spec := range resources {
		b.streams[spec.Resource], err = b.sink.Stream(context.Background(), spec)
		require.NoError(b.t, err)
	}
}

// Renewed is when the recorder said last that it records, in SQL. A Book says nothing by itself.
func (b *Book) Renewed(at string) {
	b.t.Helper()
	b.DB.Exec(b.t, `INSERT INTO kuberewind.leaders (cluster_uid, holder, token, term, renewed_at) VALUES ('`+b.config.ClusterUID+`', '`+b.config.Recorder+`', '', '6s', `+at+`)
		ON CONFLICT (cluster_uid) DO UPDATE SET renewed_at = excluded.renewed_at`)
}

// Close is a recorder that stops.
func (b *Book) Close() { b.sink.Close() }

// Pause is a recorder that stops, and comes back after d.
func (b *Book) Pause(d time.Duration) {
	b.Close()
	b.Now = b.Now.Add(d)
	b.Open()
}

// Stepped has the clock of the recorder step to a time, which the database agrees with.
func (b *Book) Stepped(to time.Time) {
	b.t.Helper()
	step := postgres.ClockStep{Record: b.Now, Recorder: to, Database: to, Adopted: true}
	require.NoError(b.t, b.sink.RecordClock(context.Background(), step))
	b.Now = to
}

// Commit writes items in one transaction. They were observed now.
func (b *Book) Commit(items ...postgres.Item) {
	b.t.Helper()
	for i := range items {
		items[i].Observed, items[i].Version = b.Now, "v1"
	}
	batch, err := b.sink.Encode(items)
	require.NoError(b.t, err)
	require.NoError(b.t, b.sink.Commit(context.Background(), batch))
}

// List ends the first list of all resources, with the objects in it.
func (b *Book) List(items ...postgres.Item) { b.t.Helper(); b.ListBut("", items...) }

// ListBut is List without one resource.
func (b *Book) ListBut(but string, items ...postgres.Item) {
	b.t.Helper()
	for _, spec := range resources {
		if spec.Resource != but {
			items = append(items, b.Listed(spec.Resource, delta.CauseFirstList, delta.SourceList))
		}
	}
	b.Commit(items...)
}

// Listed ends a list of a resource. It closes the gap that is open, if there is one.
func (b *Book) Listed(resource string, cause delta.Cause, source delta.Source) postgres.Item {
	return postgres.Item{
		Stream: b.streams[resource].ID(), Kind: postgres.Marked, Source: source, Position: strconv.Itoa(b.rv),
		Marker: delta.Marker{Kind: delta.Replaced, Cause: cause, ToRV: strconv.Itoa(b.rv)},
	}
}

// Resumed closes the gap of a resource in which nothing was missed.
func (b *Book) Resumed(resource string) postgres.Item {
	return postgres.Item{Stream: b.streams[resource].ID(), Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Resumed}}
}

// Interrupted opens a gap of a resource.
func (b *Book) Interrupted(resource string, cause delta.Cause) postgres.Item {
	return postgres.Item{Stream: b.streams[resource].ID(), Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: cause}}
}

// UIDOf is the UID of the only life of a name.
func UIDOf(resource, name string) string { return resource + "-" + name }

// Owned is metadata that names an owner.
func Owned(kind, resource, name string) string {
	return fmt.Sprintf(`"ownerReferences":[{"apiVersion":"v1","kind":%q,"name":%q,"uid":%q,"controller":true}],`, kind, name, UIDOf(resource, name))
}

// Delta is one of an object in Namespace, or of a Node. metadata and fields are JSON, such as "labels":{}, and ,"spec":{}.
func (b *Book) Delta(kind delta.Type, source delta.Source, resource, name, metadata, fields string) postgres.Item {
	b.t.Helper()
	b.rv++
	o := &Version{Name: name, UID: UIDOf(resource, name), RV: strconv.Itoa(b.rv)}
	if resource != "nodes" {
		o.Namespace = Namespace
		metadata += fmt.Sprintf(`"namespace":%q,`, Namespace)
	}
	of := resources[slices.IndexFunc(resources, func(s postgres.StreamSpec) bool { return s.Resource == resource })]
	version := strings.TrimPrefix(of.Group+"/"+of.Version, "/")
	doc, err := patch.Canonical(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{%s"name":%q,"uid":%q,"resourceVersion":%q}%s}`,
		version, of.Kind, metadata, name, o.UID, o.RV, fields))
	require.NoError(b.t, err)
	o.Content = doc
	it := postgres.Item{Stream: b.streams[resource].ID(), Kind: postgres.Delta, Type: kind, Source: source, Object: o}
	if source == delta.SourceWatch {
		it.Position = o.RV
	}
	return it
}

// Watched commits a delta of a watch.
func (b *Book) Watched(kind delta.Type, resource, name, metadata, fields string) {
	b.t.Helper()
	b.Commit(b.Delta(kind, delta.SourceWatch, resource, name, metadata, fields))
}

// Lose detaches the partition of a day.
func (b *Book) Lose(day time.Time) {
	b.t.Helper()
	b.DB.Exec(b.t, "ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p"+day.Format("20060102"))
}

// Sweep ends the sweep of the day. Objects that live without a row of their own on that day are stored again, so that earlier
// days may be dropped.
func (b *Book) Sweep() {
	b.t.Helper()
	var items []postgres.Item
	for _, st := range b.streams {
		for _, key := range st.Known().ListKeys() {
			o, _, err := st.Known().GetByKey(key)
			require.NoError(b.t, err)
			items = append(items, postgres.Item{Stream: st.ID(), Kind: postgres.Delta, Type: delta.Sync, Source: delta.SourceResync, Object: o.(postgres.KnownObject)})
		}
	}
	b.sink.Complete(b.Now)
	b.Commit(items...)
	require.True(b.t, b.sink.Swept(b.Now))
}

// Rewind puts the server's resource version back, as a restore of etcd does.
func (b *Book) Rewind(rv int) { b.rv = rv }

package replay

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/delta"
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

// book writes a record. Its clock goes as it is told.
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
	{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Namespaced: true},
	{Resource: "secrets", Kind: "Secret", Version: "v1", Namespaced: true},
	{Resource: "nodes", Kind: "Node", Version: "v1"},
}

func newBook(t testing.TB) *book {
	t.Helper()
	b := &book{t: t, now: noon, rv: 100, streams: map[string]*postgres.Stream{}}
	b.db = pgtest.New(t, pgtest.EmptyRecord)
	b.config = postgres.Config{
		URL: b.db.URL(), ClusterUID: "11111111-2222-3333-4444-555555555555", ClusterName: "test", Recorder: "test", Version: "v0",
		ConfigJSON: []byte(`{"include":[],"exclude":[],"secret-values":"hash","redact":[]}`), Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return b.now },
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

func (b *book) at(clock string) {
	b.t.Helper()
	at, err := time.Parse(time.TimeOnly, clock+":00")
	require.NoError(b.t, err)
	b.now = time.Date(noon.Year(), noon.Month(), noon.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
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
}

// object makes the next version of one. fields are what follows its metadata, such as "spec":{}.
func (b *book) object(resource, namespace, name, uid, by, metadata, fields string) *served {
	b.t.Helper()
	b.rv++
	kind := ""
	for _, spec := range bookResources {
		if spec.Resource == resource {
			kind = spec.Kind
		}
	}
	if namespace != "" {
		metadata += fmt.Sprintf(`"namespace":%q,`, namespace)
	}
	manager, subresource, _ := strings.Cut(by, "/")
	// It owns all that it can have written: atomic members have no fields below them.
	metadata += fmt.Sprintf(`"managedFields":[{"manager":%q,"operation":"Update","subresource":%q,"time":%q,"fieldsType":"FieldsV1","fieldsV1":%s}],`,
		manager, subresource, b.now.Format(time.RFC3339), `{"f:data":{},"f:metadata":{"f:labels":{}},"f:spec":{}}`)
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{%s"name":%q,"uid":%q,"resourceVersion":"%d"}%s}`, kind, metadata, name, uid, b.rv, fields)
	o := &served{namespace: namespace, name: name, uid: uid, rv: strconv.Itoa(b.rv), doc: docOf(b.t, text)}
	return o
}

func (b *book) item(resource string, kind delta.Type, source delta.Source, o *served) postgres.Item {
	it := postgres.Item{Stream: b.streams[resource].ID(), Kind: postgres.Delta, Type: kind, Source: source, Object: o}
	if source == delta.SourceWatch {
		it.Position = o.rv
	}
	return it
}

// write commits one delta of a watch.
func (b *book) write(kind delta.Type, resource string, o *served) {
	b.t.Helper()
	b.commit(b.item(resource, kind, delta.SourceWatch, o))
}

func (b *book) listed(resource string, cause delta.Cause, source delta.Source, marker delta.Marker, items ...postgres.Item) {
	b.t.Helper()
	marker.Kind, marker.Cause, marker.ToRV = delta.Replaced, cause, strconv.Itoa(b.rv)
	b.commit(append(items, postgres.Item{
		Stream: b.streams[resource].ID(), Kind: postgres.Marked, Source: source, Position: strconv.Itoa(b.rv), Marker: marker,
	})...)
}

const (
	webUID      = "00000001-0000-4000-8000-000000000000"
	secondUID   = "00000002-0000-4000-8000-000000000000"
	settingsUID = "00000003-0000-4000-8000-000000000000"
	oldUID      = "00000004-0000-4000-8000-000000000000"
	credsUID    = "00000005-0000-4000-8000-000000000000"
	nodeUID     = "00000006-0000-4000-8000-000000000000"
)

func (b *book) web(uid, by string, replicas int, image, metadata string) *served {
	b.t.Helper()
	return b.object("deployments", "shop", "web", uid, by, metadata, fmt.Sprintf(
		`,"spec":{"replicas":%d,"template":{"spec":{"containers":[{"name":"log","image":"log:1"},{"name":"web","image":%q}]}}}`, replicas, image))
}

// story is a quarter of an hour with most of what can happen.
func story(t testing.TB) *book {
	t.Helper()
	b := newBook(t)
	settings := b.object("configmaps", "shop", "settings", settingsUID, "kubectl", "", `,"data":{"mode":"slow"}`)
	old := b.object("configmaps", "shop", "old", oldUID, "kubectl", "", `,"data":{}`)
	b.listed("configmaps", "first_list", delta.SourceList, delta.Marker{},
		b.item("configmaps", delta.Sync, delta.SourceList, settings), b.item("configmaps", delta.Sync, delta.SourceList, old))
	for _, resource := range []string{"deployments", "secrets", "nodes"} {
		b.listed(resource, "first_list", delta.SourceList, delta.Marker{})
	}
	b.at("12:01")
	b.write(delta.Added, "deployments", b.web(webUID, "kubectl-create", 3, "nginx:1.25", ""))
	b.at("12:02")
	b.write(delta.Updated, "deployments", b.web(webUID, "kubectl/scale", 5, "nginx:1.25", ""))
	b.at("12:03")
	b.write(delta.Updated, "deployments", b.web(webUID, "helm", 5, "nginx:1.27", `"labels":{"app":"web"},`))
	b.at("12:04")
	b.write(delta.Updated, "deployments", b.web(webUID, "helm", 5, "nginx:1.27", `"labels":{"app":"web"},`))
	b.at("12:05")
	b.write(delta.Added, "secrets", b.object("secrets", "shop", "creds", credsUID, "kubectl", "", `,"data":{"password":"hmac-sha256:00"}`))
	b.at("12:06")
	b.write(delta.Updated, "secrets", b.object("secrets", "shop", "creds", credsUID, "kubectl", "", `,"data":{"password":"hmac-sha256:01"}`))
	b.write(delta.Added, "nodes", b.object("nodes", "", "worker", nodeUID, "kubelet", "", `,"spec":{}`))
	b.at("12:07")
	b.write(delta.Deleted, "deployments", b.web(webUID, "kubectl", 5, "nginx:1.27", `"labels":{"app":"web"},`))
	b.at("12:08")
	b.write(delta.Added, "deployments", b.web(secondUID, "helm", 1, "nginx:2", ""))
	b.at("12:10")
	b.commit(postgres.Item{Stream: b.streams["configmaps"].ID(), Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: "expired", Detail: "too old"}})
	b.at("12:11")
	changed := b.object("configmaps", "shop", "settings", settingsUID, "kubectl", "", `,"data":{"mode":"fast"}`)
	vanished := postgres.Item{
		Stream: b.streams["configmaps"].ID(), Kind: postgres.Delta, Type: delta.Deleted, Source: delta.SourceInferred,
		Key: "shop/old", UID: oldUID, RV: strconv.Itoa(b.rv),
	}
	b.listed("configmaps", "expired", delta.SourceRelist, delta.Marker{Changed: 1, Vanished: 1},
		b.item("configmaps", delta.Sync, delta.SourceRelist, changed), vanished)
	b.at("12:12")
	b.write(delta.Updated, "deployments", b.web(secondUID, "helm", 2, "nginx:2", ""))
	b.sink.Close()
	b.at("12:20")
	b.open()
	b.at("12:16") // within the pause
	late := b.item("deployments", delta.Updated, delta.SourceWatch, b.web(secondUID, "kubectl/scale", 4, "nginx:2", ""))
	late.Occurred = b.now
	b.at("12:21")
	late.Observed = b.now
	b.commit(late)
	return b
}

// answer is what a call of the program gave.
type answer struct {
	code     int
	out, err string
}

// replayed calls the program on the record.
func (b *book) replayed(t *testing.T, args ...string) answer {
	t.Helper()
	return b.replayedAs(t, b.db.URL(), args...)
}

func (b *book) replayedAs(t *testing.T, url string, args ...string) answer {
	t.Helper()
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	var out, errOut bytes.Buffer
	code := Execute(t.Context(), "replay", append(args, "--database", url), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	return answer{code: code, out: out.String(), err: errOut.String()}
}

// docOf is an object in canonical form.
func docOf(t testing.TB, text string) patch.Doc {
	t.Helper()
	doc, err := patch.Canonical([]byte(text))
	require.NoError(t, err)
	return doc
}

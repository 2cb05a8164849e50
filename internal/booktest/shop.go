package booktest

import (
	"fmt"
	"testing"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A Shop is a Book of the usual resources. Its objects are in one namespace, and each name has one life.
type Shop struct{ *Book }

// Namespace is the namespace of all objects of a Shop, except Nodes.
const Namespace = "shop"

var shop = []postgres.StreamSpec{
	{Group: "apps", Resource: "deployments", Kind: "Deployment", Version: "v1", Namespaced: true},
	{Resource: "pods", Kind: "Pod", Version: "v1", Namespaced: true},
	{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Namespaced: true},
	{Group: "coordination.k8s.io", Resource: "leases", Kind: "Lease", Version: "v1", Namespaced: true},
	{Resource: "nodes", Kind: "Node", Version: "v1"},
	{Group: "example.com", Resource: "things", Kind: "Thing", Version: "v1", Namespaced: true},
}

// NewShop begins a Shop at Noon, in a database of its own.
func NewShop(t testing.TB) *Shop {
	t.Helper()
	return &Shop{New(t, Options{Streams: shop})}
}

// NewShopOn begins a Shop on an empty record, such as a copy of a template. The Shop has no DB.
func NewShopOn(t testing.TB, url string) *Shop {
	t.Helper()
	return &Shop{NewOn(t, url, Options{Streams: shop})}
}

// List ends the first list of all resources, with the objects in it.
func (s *Shop) List(items ...postgres.Item) { s.t.Helper(); s.ListBut("", items...) }

// ListBut is List without one resource.
func (s *Shop) ListBut(but string, items ...postgres.Item) {
	s.t.Helper()
	for _, resource := range s.Names() {
		if resource != but {
			items = append(items, s.Listed(resource, delta.CauseFirstList, delta.SourceList))
		}
	}
	s.Commit(items...)
}

// UIDOf returns the UID of the only life of a name.
func UIDOf(resource, name string) string { return resource + "-" + name }

// Owned returns metadata that names an owner.
func Owned(kind, resource, name string) string {
	return fmt.Sprintf(`"ownerReferences":[{"apiVersion":"v1","kind":%q,"name":%q,"uid":%q,"controller":true}],`, kind, name, UIDOf(resource, name))
}

// Delta returns a delta of an object in Namespace, or of a Node. metadata and fields are JSON, such as `"labels":{},`
// and `,"spec":{}`.
func (s *Shop) Delta(kind delta.Type, source delta.Source, resource, name, metadata, fields string) postgres.Item {
	s.t.Helper()
	namespace := ""
	if s.spec(resource).Namespaced {
		namespace = Namespace
	}
	return s.Item(resource, kind, source, s.Next(resource, namespace, name, UIDOf(resource, name), metadata, fields))
}

// Watched commits a delta of a watch.
func (s *Shop) Watched(kind delta.Type, resource, name, metadata, fields string) {
	s.t.Helper()
	s.Commit(s.Delta(kind, delta.SourceWatch, resource, name, metadata, fields))
}

// Renewed sets when the recorder last renewed its leadership, in SQL. A Shop does not renew it by itself.
func (s *Shop) Renewed(at string) {
	s.t.Helper()
	s.LedBy(s.Config.Recorder, at)
}

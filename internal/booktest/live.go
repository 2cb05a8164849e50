package booktest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Live returns the living object with a key such as "shop/web", or nil.
func (b *Book) Live(stream, key string) *Object {
	return b.live[stream][key]
}

// AllLive returns the living objects of a stream, by key.
func (b *Book) AllLive(stream string) []*Object {
	var all []*Object
	for _, key := range slices.Sorted(maps.Keys(b.live[stream])) {
		all = append(all, b.live[stream][key])
	}
	return all
}

// UID returns the UID of the living object with a name, or a new one.
func (b *Book) UID(stream, namespace, name string) string {
	if o := b.Live(stream, Key(namespace, name)); o != nil {
		return o.UID
	}
	b.uids++
	return fmt.Sprintf("%08d-0000-4000-8000-000000000000", b.uids)
}

// Set returns an event of a watch that creates or changes an object.
func (b *Book) Set(stream string, o *Object) postgres.Item {
	b.t.Helper()
	kind := delta.Updated
	if b.live[stream][o.Key()] == nil {
		kind = delta.Added
	}
	b.live[stream][o.Key()] = o
	return b.Item(stream, kind, delta.SourceWatch, o)
}

// Remove returns an event of a watch that deletes an object, with its last version.
func (b *Book) Remove(stream string, last *Object) postgres.Item {
	b.t.Helper()
	delete(b.live[stream], last.Key())
	return b.Item(stream, delta.Deleted, delta.SourceWatch, last)
}

// Found returns a version that only a list shows.
func (b *Book) Found(stream string, o *Object) postgres.Item {
	b.t.Helper()
	b.live[stream][o.Key()] = o
	return b.Item(stream, delta.Sync, delta.SourceRelist, o)
}

// Vanished returns the inferred delete of an object that a list no longer has.
func (b *Book) Vanished(stream string, o *Object) postgres.Item {
	b.t.Helper()
	delete(b.live[stream], o.Key())
	return postgres.Item{
		Stream: b.Stream(stream).ID(), Kind: postgres.Delta, Type: delta.Deleted, Source: delta.SourceInferred,
		Key: o.Key(), UID: types.UID(o.UID), RV: strconv.Itoa(b.RV),
	}
}

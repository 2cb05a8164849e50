package booktest

import (
	"strconv"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Item returns a delta of an object. An item of a watch moves the position of its stream.
func (b *Book) Item(stream string, kind delta.Type, source delta.Source, o *Object) postgres.Item {
	b.t.Helper()
	it := postgres.Item{Stream: b.Stream(stream).ID(), Kind: postgres.Delta, Type: kind, Source: source, Object: o}
	if source == delta.SourceWatch {
		it.Position = o.RV
	}
	return it
}

// Listed returns the end of a list of a stream. It closes the open gap, if there is one.
func (b *Book) Listed(stream string, cause delta.Cause, source delta.Source) postgres.Item {
	b.t.Helper()
	rv := strconv.Itoa(b.RV)
	it := b.marked(stream, delta.Marker{Kind: delta.Replaced, Cause: cause, ToRV: rv})
	it.Source, it.Position = source, rv
	return it
}

// Interrupted returns an item that opens a gap of a stream.
func (b *Book) Interrupted(stream string, cause delta.Cause) postgres.Item {
	b.t.Helper()
	return b.marked(stream, delta.Marker{Kind: delta.Interrupted, Cause: cause})
}

// Resumed returns an item that closes the gap of a stream in which nothing was missed.
func (b *Book) Resumed(stream string) postgres.Item {
	b.t.Helper()
	return b.marked(stream, delta.Marker{Kind: delta.Resumed})
}

func (b *Book) marked(stream string, marker delta.Marker) postgres.Item {
	b.t.Helper()
	return postgres.Item{Stream: b.Stream(stream).ID(), Kind: postgres.Marked, Marker: marker}
}

// Next returns the next version of an object. metadata and fields are JSON, such as `"labels":{},` and `,"spec":{}`.
func (b *Book) Next(stream, namespace, name, uid, metadata, fields string) *Object {
	b.t.Helper()
	b.RV++
	return b.At(b.RV, stream, namespace, name, uid, metadata, fields)
}

// At returns a version of an object with a resource version that may be an old one.
func (b *Book) At(rv int, stream, namespace, name, uid, metadata, fields string) *Object {
	b.t.Helper()
	return NewObject(b.t, b.spec(stream), rv, namespace, name, uid, metadata, fields)
}

// Package booktest writes records for tests, as a recorder does: with the real sink, and a clock that goes as it is told.
//
//	b := booktest.New(t, booktest.Options{Streams: []postgres.StreamSpec{{Resource: "pods", Kind: "Pod", Version: "v1", Namespaced: true}}})
//	b.Commit(b.Listed("pods", delta.CauseFirstList, delta.SourceList))
//	b.Commit(b.Set("pods", b.Next("pods", "shop", "web", b.UID("pods", "shop", "web"), "", `,"spec":{}`)))
//
// # What it guarantees
//
//   - A Book is one record of one cluster. It begins a new epoch each time it is opened.
//   - A Book is a model of the cluster, too. It knows which objects live in each stream, and the newest resource version.
//   - A stream is known by its resource, and by its scope if it has one: "pods", "secrets/shop".
//   - Nothing is committed but by Commit: the other methods make items. Those that make versions of objects raise the resource version.
//
// # What it rejects
//
// What a sink refuses fails the test.
//
// # Goroutines
//
// None, but those of the sink, which ends with the test.
package booktest

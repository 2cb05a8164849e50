// Package booktest writes records for tests, as a recorder does: with the real sink, and a clock that the test sets.
//
//	b := booktest.New(t, booktest.Options{Streams: []postgres.StreamSpec{{Resource: "pods", Kind: "Pod", Version: "v1", Namespaced: true}}})
//	b.Commit(b.Listed("pods", delta.CauseFirstList, delta.SourceList))
//	b.Commit(b.Set("pods", b.Next("pods", "shop", "web", b.UID("pods", "shop", "web"), "", `,"spec":{}`)))
//
// # What it guarantees
//
//   - A Book is one record of one cluster. It begins a new epoch each time it is opened.
//   - A Book is also a model of the cluster. It knows which objects live in each stream, and the newest resource
//     version.
//   - The name of a stream is its resource, with its scope if it has one: "pods", "secrets/shop".
//   - Only Commit commits; the other methods make items. The methods that make versions of objects raise the resource
//     version.
//
// # What it rejects
//
// If the sink returns an error, the test fails.
//
// # Goroutines
//
// None, except those of the sink, which end with the test.
package booktest

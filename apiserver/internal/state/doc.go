// Package state caches resources as they were at points of the record, in the form of answers.
//
// # What it guarantees
//
//   - A State never changes. It holds the objects of one resource in the order of an API server's lists. They are JSON without apiVersion and
//     kind. So an answer is a copy of bytes, and a page begins with a binary search.
//   - A Cache builds each State once, for all callers that request it at the same time. It keeps the last used States, up to a number
//     of bytes. If a caller stops waiting, the build continues, because other callers may wait for it.
//   - States share the texts of objects that did not change between them. The Cache counts the full size of each State.
//
// Each build runs in a goroutine of the Cache. Close ends all builds and waits for them.
package state

// Package state keeps resources as they were at points of the record, ready to be served.
//
// # What it guarantees
//
//   - A State never changes. It holds the objects of one resource in the order of an API server's lists. They are JSON without apiVersion and
//     kind. So an answer is a copy of bytes, and a page begins with a binary search.
//   - A Cache builds each State once, for all callers that ask at the same time. It keeps the last used, up to a number of bytes.
//     If a caller goes away, the building goes on: the others wait for it.
//   - States share the texts of objects that did not change between them. Each counts whole in the Cache's bytes.
//
// A building runs in a goroutine of the Cache; Close ends all and waits for them.
package state

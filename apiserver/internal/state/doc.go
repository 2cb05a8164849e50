// Package state keeps resources as they were at points of the record, ready to be served.
//
// # What it guarantees
//
//   - A State never changes. It holds the objects of one resource in the order of an API server's lists, as JSON without apiVersion and kind,
//     so that an answer is a copy of bytes, and a page begins with a binary search.
//   - A Cache builds each State once, however many callers ask for it at the same time, and keeps the last used up to a number of bytes.
//     A caller that goes away does not end the building: the others wait for it.
//   - States share the texts of objects that did not change between them. Each counts whole in the Cache's bytes.
//
// A building runs in a goroutine of the Cache; Close ends all and waits for them.
package state

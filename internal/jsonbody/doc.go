// Package jsonbody reads the JSON bodies of small write requests, and rejects bodies that it does not understand.
//
// Each body must be one JSON object. Each field must be known, and occur once. If not, the answer is 400 with an example. A
// larger body gets 413, so that no client fills the memory. The package imports no other package of this program, starts no
// goroutine and keeps no state.
package jsonbody

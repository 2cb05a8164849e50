// Package jsonbody reads the JSON bodies of small requests that write, and refuses what is not understood.
//
// Each body is one JSON object whose fields are all known, and each is there once. Else the answer is 400 with an example. A larger body is 413, so that no
// client fills the memory. It knows no other package of this program, starts no goroutine and keeps nothing.
package jsonbody

// Package render writes JSON documents for people, terminals and files.
//
// # What it guarantees
//
//   - JSON gives the same JSON value, without a character that steers a terminal or turns the direction of a line.
//   - YAML gives a text that reads back as an equal value: every character of every key and string, whatever it is. The bytes are those of
//     kubectl, with two exceptions. Members called <<, and strings that hold a bidirectional control or a separator of lines, are quoted.
//   - Line gives one line of text that a terminal shows as it is.
//   - Short gives lines of at most 4 KiB.
//
// # What it rejects, and why
//
//   - YAML has no form for a lone surrogate or for bytes that are not UTF-8. U+FFFD stands for each; Replaced names the places.
//   - YAML returns an error if two members of one object get one name that way, and for numbers beyond a float64.
//   - Integers beyond 64 bits and longer fractions are rounded to a float64, as kubectl rounds them. JSON keeps them.
//
// The package has no state and starts no goroutine.
package render

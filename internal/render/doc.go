// Package render writes JSON documents for people, terminals and files.
//
// # What it guarantees
//
//   - JSON returns the same JSON value, without characters that control a terminal or change the direction of a line.
//   - YAML returns a text that reads back as an equal value, with every character of every key and string. The bytes are
//     those of kubectl, with two exceptions: YAML quotes members named <<, and strings that hold a bidirectional control or
//     a line separator.
//   - Line returns one line of text that a terminal shows unchanged.
//   - Short returns lines of at most 4 KiB.
//
// # What it rejects, and why
//
//   - YAML has no form for a lone surrogate or for bytes that are not UTF-8. U+FFFD replaces each; Replaced returns the
//     places.
//   - YAML returns an error if two members of one object get the same name by this, and for numbers beyond a float64.
//   - YAML rounds integers beyond 64 bits and longer fractions to a float64, like kubectl. JSON keeps them.
//
// The package has no state and starts no goroutine.
package render

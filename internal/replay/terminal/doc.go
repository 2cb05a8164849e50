// Package terminal is how commands write for a person at a terminal: through a pager, in colour, in lines that fit.
//
// # What it guarantees
//
//   - A Pager starts its program only if the text is longer than the screen. Standard error waits until its text has ended.
//   - A Style that is off changes nothing.
//   - Wrap breaks lines at spaces, counts columns and not bytes, and leaves escape sequences whole.
//
// # Goroutines
//
// One waits for the program of a Pager. Close waits for it.
package terminal

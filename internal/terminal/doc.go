// Package terminal writes for a person at a terminal: through a pager, in colour, in lines that fit.
//
// # What it guarantees
//
//   - A Pager starts its program only if the text is longer than the screen. It holds back standard error until the text has
//     ended.
//   - A Style that is off returns text unchanged.
//   - Wrap breaks lines at spaces, counts columns instead of bytes, and never breaks an escape sequence.
//
// # Goroutines
//
// One goroutine waits for the program of a Pager. Close waits for it.
package terminal

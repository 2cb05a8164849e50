// Package signals ends the program at a signal, unless a command handles the signals for a program that it runs.
//
// # Goroutines
//
// End starts one goroutine. It lasts as long as the program, or until the first signal.
package signals

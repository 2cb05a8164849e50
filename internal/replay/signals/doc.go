// Package signals ends the program at a signal, unless a command takes the signals for the program that it runs.
//
// # Goroutines
//
// One, of End. It lasts as long as the program, or until the first signal.
package signals

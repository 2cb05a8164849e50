// Package env is what all commands of replay have. It holds settings, streams, the record, and a way to end.
//
// A command asks Env to open the record, to read an instant, and to print a note. Env owns nothing that outlives the command.
package env

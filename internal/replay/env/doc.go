// Package env holds the parts that all commands of replay share: settings, streams, the record, and exit codes.
//
// A command uses Env to open the record, parse an instant, and print a note. Env owns nothing that outlives the command.
package env

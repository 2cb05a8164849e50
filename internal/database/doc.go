// Package database opens the PostgreSQL of the configuration: one that runs somewhere, or the embedded one.
//
// It guarantees that an embedded server runs as long as a Database is open, and is started again if it died ([Database.Keep]).
// Errors name the database without its password, and say what to do if that is known.
//
// Keep belongs to the goroutine that calls it. A connection gets 30 s, and the closing of an embedded server a minute.
package database

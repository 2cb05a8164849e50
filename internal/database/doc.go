// Package database opens the PostgreSQL of the configuration: a server elsewhere, or the embedded one.
//
// An embedded server runs as long as a Database is open. [Database.Keep] starts it again if it dies. Errors name the database without its
// password. If the package knows what to do, they say that, too.
//
// Keep belongs to the goroutine that calls it. Opening a connection may take 30 s, and closing an embedded server a minute.
package database

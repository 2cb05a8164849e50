// Package printers makes the tables that kubectl get shows, as an API server would have made them at an instant.
//
// # What it guarantees
//
//   - Built-in kinds have the cells of Kubernetes' own printers. Custom resources have the printer columns of the given
//     definition. If a server shows only name and creation time of a kind, the package does the same.
//   - Every cell with an age shows it as of the instant: AGE, RESTARTS (… ago), LAST SEEN, DURATION of running objects,
//     columns of type date. The printers read the wall clock, so the package passes them a copy of the object in which every
//     time is shifted by the age of the instant.
//   - An object that the printers do not know still gets a row, with name and age. Its version may have been removed since,
//     or the object may not decode.
//
// # What it rejects, and why
//
// The package rejects text that is not an object. Rows carry all columns, with their priorities; cli-runtime's table printer
// decides which columns it shows.
//
// The package starts no goroutine and keeps only what it has parsed. One goroutine at a time may use a Tables.
package printers

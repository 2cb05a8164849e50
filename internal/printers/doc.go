// Package printers makes the tables that kubectl get shows, as an API server would have made them at an instant.
//
// # What it guarantees
//
//   - Built-in kinds have the cells of Kubernetes' own printers. Custom resources have the printer columns of the given
//     definition. If a server says only name and creation time of a kind, so does the package.
//   - Every cell with an age shows it as of the instant: AGE, RESTARTS (… ago), LAST SEEN, DURATION of running objects,
//     columns of type date. The printers read the wall clock. So they get a copy of the object in which every time is shifted
//     by the age of the instant.
//   - An object that the printers do not know still has a row, by name and age. Its version may have been removed since, or
//     it may not decode.
//
// # What it rejects, and why
//
// It rejects text that is no object at all. cli-runtime's table printer decides which columns are shown: rows carry all of
// them, with their priorities.
//
// The package starts no goroutine and keeps only what it has parsed. A Tables is for one goroutine at a time.
package printers

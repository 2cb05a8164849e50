// Package printers makes the tables that an API server would have made at an instant: the columns that kubectl get shows.
//
// # What it guarantees
//
//   - Built-in kinds have the cells of Kubernetes' own printers, custom resources those of the printer columns of their definition, as
//     it is handed in; kinds whose server says name and creation time only have these.
//   - Every cell that tells how long ago something was — AGE, RESTARTS (… ago), LAST SEEN, DURATION of what still runs, columns of type
//     date — tells it as of the instant. The printers read the wall clock; so what they get is a copy of the object in which every time
//     is shifted by as much as the instant lies back.
//   - What the printers do not know (a version that was removed since, an object that does not decode) still has a row, by name and age.
//
// # What it rejects, and why
//
// Text that is no object at all. Which columns are shown is for cli-runtime's table printer to decide: rows carry all of them, with
// their priorities.
//
// The package starts no goroutine and holds no state but what it has parsed. A Tables is for one goroutine at a time.
package printers

// Package delta holds the words that every stage uses, each of them once.
//
// The words are types, sources, causes and outcomes of gaps, states and markers. The order of resource versions and
// the position of a stream are here, too.
//
// # What it guarantees
//
//   - It imports nothing of the module, so that every stage and every reader can import it.
//   - A word is spelled as the record, the logs, the metrics and the SQL surface spell it.
//   - Types and sources have the numbers under which the record stores them. The views of migrations/ turn the numbers
//     into words.
//
// # What it rejects, and why
//
//   - A separate type for the types of deltas. [Type] is client-go's cache.DeltaType, because reflector, deltafifo and
//     indexer are used with client-go's queues and stores. For that name the package imports
//     k8s.io/client-go/tools/cache.
//
// # Goroutines
//
// The package starts none and has no state.
package delta

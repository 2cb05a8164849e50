// Package auditlog records every request in the format of Kubernetes' audit log.
//
// # What it guarantees
//
//   - Each request, also a refused one, is one JSON line: an Event of audit.k8s.io/v1, level Metadata, stage ResponseComplete. The line
//     of a watch is written when the watch ends. A request that the log itself refuses with 503 has no line.
//   - No line is lost while the server runs. If a line cannot be written, the log keeps it, and requests get 503 until a retry succeeds.
//   - The log contains no token and no body.
//
// # Goroutines
//
// None.
package auditlog

// Package auditlog writes down every request in the format of Kubernetes' audit log.
//
// # What it guarantees
//
//   - Each request is one JSON line: an Event of audit.k8s.io/v1, level Metadata, stage ResponseComplete. Each refused one is
//     too. A watch is written when it ends.
//   - No line is lost while the server runs. If a line cannot be written, it is kept, and requests get 503 until it could be.
//   - No token is in it, and no body.
//
// # Goroutines
//
// None.
package auditlog

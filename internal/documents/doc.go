// Package documents records the documents that an API server publishes about itself: discovery, OpenAPI and its version.
//
// It reads them at the start, after resources have come or gone, and every ten minutes. These documents are not deltas: if a
// server does not answer, the follower retries, and opens no gap. [Follower.Run] runs in the goroutine that calls it.
package documents

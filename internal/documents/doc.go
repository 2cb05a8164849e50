// Package documents records what an API server says of itself: discovery, OpenAPI and its version.
//
// It asks at the start, after resources have come or gone, and every ten minutes. These documents are not deltas: a server that
// does not answer is asked again, and nothing is a gap. [Follower.Run] belongs to the goroutine that calls it.
package documents

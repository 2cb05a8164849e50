// Package resources starts and ends the streams of resources as they come and go.
//
// Discovery (kube.Follower) calls a [Handler]. The Handler collects the facts of a resource and passes them to lifecycle.Decide. Then it
// carries out the decision:
//
//	Added ──▶ query the record and the server (decide) ──▶ Launch
//	Changed ──▶ Launch in the version that is served now
//	Removed ──▶ an ending waits for the last deletions, at most a minute ──▶ End
//
// Objects can outlive a definition that lost its finalizer. So before a stream starts as if no object existed, the Handler asks the server
// for one object. If there are objects, or the server does not say, the Handler lists the resource, and a gap marks the unknown time.
//
// # Errors
//
// If a stream cannot be opened, kube.Follower retries it, and the other resources go on. An error that every other stream would also meet
// ends the recorder, so that it does not look alive while it records nothing.
//
// # Goroutines
//
// Each ending has one goroutine. A call for the same resource stops it first, and Wait waits for all.
package resources

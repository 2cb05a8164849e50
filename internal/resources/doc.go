// Package resources starts and ends the streams of resources as they come and go.
//
// Discovery (kube.Follower) calls a [Handler]. It collects the facts of a resource, has lifecycle.Decide decide, and does that:
//
//	Added ──▶ the record and the server are asked (decide) ──▶ Launch
//	Changed ──▶ Launch in the version that is served now
//	Removed ──▶ an ending waits for the last deletions, at most a minute ──▶ End
//
// Objects can outlive a definition that lost its finalizer. So the server is asked for one object wherever a stream would go on as if nothing
// lived. If nobody can tell, the resource is listed, and a gap says what is not known.
//
// # Errors
//
// A resource that cannot be opened is tried again by kube.Follower, and holds up no other. An error that will meet every other stream ends
// the recorder: it must not look alive and record nothing.
//
// # Goroutines
//
// Each ending has one. A call for the same resource stops it first, and Wait waits for all.
package resources

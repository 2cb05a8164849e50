// Package discovery answers what a Kubernetes API server said of itself at one instant: discovery in both of its forms, OpenAPI v3,
// the version and the health checks.
//
// # What it guarantees
//
// The recorder took documents from the server. The answers made of them are those of kube-apiserver 1.37, as JSON values, with these changes:
//
//   - Verbs are get, list and watch, in this order, as far as the server had them.
//   - A resource that the record lacks stays, without verbs.
//   - Of the subresources, status and scale stay, with the verb get. Storage version hashes are left out: recorded discovery does not have them.
//   - The server address in /api is the host that the client asked.
//   - JSON is the only encoding; OpenAPI documents can be had as protobuf, too. Discovery refuses no Accept header: if none of its
//     clauses asks for aggregated discovery as JSON, the answer is the legacy form.
//   - OpenAPI v2 is not on record. It gets a 404 that says so.
//   - A redirect to the right hash of an OpenAPI document names only the query, so that a prefix of the URL stays as it is.
//   - The health checks tell of this program, and are always good.
//
// The legacy lists have the order of the aggregated ones. The real server orders built-in resources alike, and custom resources of
// one group at random.
//
// # How old a document may be
//
// A document is the one that the recorder saw last at that instant. If it saw none by then, it is the first one after.
//
//   - The recorder asks when it learns that a resource came, changed or went: at once, and again 1, 3, 8 and 28 seconds later. The server
//     publishes a new definition within a second or two; until then discovery lacks it, and the real one did, too.
//   - Otherwise the recorder asks each 10 to 11 minutes. So long the outage of an extension API server can be missing.
//   - OpenAPI documents are read one after the other. The hash in the index can be some seconds ahead of its document; it is then
//     redirected to the hash of the document that is there.
//
// If the record has no aggregated discovery (Kubernetes before 1.26), the recorded streams stand in for it.
//
// # What it rejects
//
// Methods other than GET and HEAD: 405. A version of an extension API server that did not answer at the instant: 503.
//
// # Goroutines
//
// None. A [Server] does not change, and is safe for concurrent use.
package discovery

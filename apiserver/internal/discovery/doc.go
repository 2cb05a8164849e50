// Package discovery serves a Kubernetes API server's description of itself at one instant: discovery in both of its forms, OpenAPI
// v3, the version and the health checks.
//
// # What it guarantees
//
// The recorder fetched documents from the server. This package makes its answers from them. As JSON values, they equal the answers of
// kube-apiserver 1.37, with these changes:
//
//   - Verbs are get, list and watch, in this order, as far as the server had them.
//   - A resource that the record does not have remains, without verbs.
//   - Only the subresources status and scale remain, with the verb get. There are no storage version hashes, because recorded
//     discovery does not have them.
//   - The server address in /api is the host of the client's request.
//   - JSON is the only encoding, except that OpenAPI documents are available as protobuf, too. Discovery refuses no Accept header: if
//     no clause requests aggregated discovery as JSON, the answer has the legacy form.
//   - OpenAPI v2 is not recorded. The answer is a 404 that says so.
//   - A redirect to the right hash of an OpenAPI document has only a query, so that a prefix of the URL does not change.
//   - The health checks concern this program, and always succeed.
//
// The legacy lists have the order of the aggregated lists. The real server has the same order for built-in resources, and a random
// order for custom resources of one group.
//
// # How old a document may be
//
// A document is the last one that the recorder fetched until that instant. If there is none, it is the first one after it.
//
//   - If a resource was added, changed or removed, the recorder fetches the documents at once, and again 1, 3, 8 and 28 seconds later.
//     The server publishes a new definition within a second or two. Until then it is missing here, as it was on the real server.
//   - Otherwise the recorder fetches the documents every 10 to 11 minutes. An outage of an extension API server can be missing for
//     that long.
//   - The recorder fetches OpenAPI documents one after the other. Therefore, the hash in the index can be some seconds ahead of its
//     document. A request for that hash is redirected to the hash of the recorded document.
//
// If the record has no aggregated discovery (Kubernetes before 1.26), discovery is made from the recorded streams.
//
// # What it rejects
//
// Methods other than GET and HEAD: 405. A version of an extension API server that did not answer at the instant: 503.
//
// # Goroutines
//
// None. A [Server] does not change, and is safe for concurrent use.
package discovery

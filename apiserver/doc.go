// Package apiserver serves a record as the API of a Kubernetes cluster at an instant: read-only, with the original resource versions.
//
// # What it guarantees
//
//   - /clusters/<UID>/at/seq:<N>/ is the root of a whole API: discovery, OpenAPI v3, objects, tables, watches, reviews. An answer
//     shows the record at that seq. The header Kuberewind-Seq has its number. A URL always has the same answer, until days are
//     dropped or values erased.
//   - /clusters/<UID>/session/<name>/ is the same API at the clock of a session. /session/v1/<name> sets and plays that clock. While
//     it plays, watches deliver the recorded deltas in time with the clock.
//   - Objects are the bytes that the API server sent, after redaction. The hash of a Secret's value is base64 here, so that typed
//     clients can decode it. If a client requests a built-in kind in another version, Kubernetes' own scheme converts it.
//   - /clusters/<UID>/session/live/ is the same API at the end of the record, which moves. Each answer shows the last commit. A
//     list's resource version is the position of its stream in that commit. A list with a continue token stays at the seq of its
//     first page. If a request names a resource version that is not recorded yet, the server waits for it, up to 3 seconds.
//   - A list's resource version is the position of its stream at the instant. A watch delivers the deltas after a resource version
//     up to the instant, then bookmarks. If the instant moves, the watch continues: each delta once, in order, as in package
//     feed.
//   - If the recorder was confined to several namespaces, a list over all of them has the oldest position of their streams as its
//     resource version. A watch from there misses nothing, and can repeat changes that the list has.
//   - No watch crosses a gap that a list closed: it fails with 410 Gone, because the rows of that list are in the list's order. If
//     the gap ends while the watch is open, its last event is that 410.
//   - The client sets the pace of initial events and recorded history. They hold no database connection while the client reads. On a
//     moving instant, a client that has caught up must keep up: at 16 MiB behind, or after 10 s without a read, its watch ends.
//   - /clusters/<UID>/shifted/ has the same roots with all times shifted to now, for clients that compute ages themselves. The header
//     Kuberewind-Shifted has the shift. Only fields that are known to be times are shifted.
//   - Warning headers name the gaps, pauses and estimates that affect an answer.
//
// # What it rejects, and why
//
//   - Every write, with 405: the past is read-only. Options.Intentions receives the user and the write first.
//   - Any form of an instant other than seq:<N>, with 400 and the canonical form: "10m ago" would move between a list and its watch.
//   - Resources that the record does not have, with 404 and the reason. Discovery lists them without verbs.
//   - Impersonation, with 403, except in access reviews.
//
// # Who may read
//
// Options.Access decides each read. Without it, every client of the Handler may read. The caller is the user of the request's
// context (k8s.io/apiserver/pkg/endpoints/request).
//
// # Knobs
//
// Options.CacheBytes (512 MiB) bounds the cached rebuilt states. Options.MaxWatches (1,000) bounds open watches.
//
// # Goroutines
//
// Rebuilds, sessions and the follower of each cluster have their own goroutines. Close ends them and waits for them. While a watch
// of live is open, the follower reads the head of the record every 250 ms. A watch runs in the goroutine of its request.
package apiserver

// Package apiserver serves a record as the API of a Kubernetes cluster at an instant: read-only, with the original resource versions.
//
// # What it guarantees
//
//   - /clusters/<UID>/at/seq:<N>/ is the root of a whole API: discovery, OpenAPI v3, objects, tables, watches, reviews. An answer is of
//     that seq, whose number is in the header Kuberewind-Seq. A URL means the same for ever, until days are dropped or values erased.
//   - /clusters/<UID>/session/<name>/ is the same at the clock of a session, which /session/v1/<name> sets and plays. While it plays, watches
//     deliver what was recorded, at its distances.
//   - Objects are the bytes that the API server served, after redaction. Hashed values of Secrets are base64 here, so that typed clients
//     can decode them. A built-in kind that is asked for in another version is converted by Kubernetes' own scheme.
//   - /clusters/<UID>/session/live/ is the same at the end of the record, which moves. Each answer is of the last commit, each list's version the
//     position of its stream in that commit. A list with a continue token stays at the seq of its first page. A resource version
//     that is not on record yet is waited for, up to 3 seconds.
//   - A list's resource version is the position of its stream at the instant. A watch delivers what follows a resource version
//     up to the instant, then bookmarks. If the instant moves, the watch goes on: each delta once, in order, as in package
//     feed.
//   - If the recorder was confined to several namespaces, the resource version of a list over all of them is the oldest position of their streams.
//     A watch from there misses nothing, and can give again what the list has.
//   - No watch crosses a gap that a list closed: it gets 410 Gone, because the rows of that list are in the list's order. If the gap ends
//     while the watch is open, it gets that as its last event.
//   - Initial events and recorded history go at the client's pace, and hold no connection to the database meanwhile. A client that has caught up
//     with an instant that moves has to keep up: who is 16 MiB behind, or takes nothing for 10 seconds, is ended.
//   - /clusters/<UID>/shifted/ has the same roots with all times shifted to now, for clients that count ages themselves. The header
//     Kuberewind-Shifted says by how much. Only what is known to be a time is shifted.
//   - Gaps, pauses and estimates that touch an answer are named in its Warning headers.
//
// # What it rejects, and why
//
//   - Every write, with 405: the past is read-only. Options.Intentions gets it before: who wanted to write what.
//   - Another spelling of an instant than seq:<N>, with 400 and the canonical form: "10m ago" would move between a list and its watch.
//   - Resources that the record lacks, with 404 and the reason. Discovery names them without verbs.
//   - Impersonation, with 403, but for access reviews.
//
// # Who may read
//
// Options.Access decides, for each read. Without it, everybody who reaches the Handler may read. The user of the request's
// context (k8s.io/apiserver/pkg/endpoints/request) is the one who asks.
//
// # Knobs
//
// Options.CacheBytes (512 MiB) bounds the rebuilt states that are kept. Options.MaxWatches (1,000) bounds open watches.
//
// # Goroutines
//
// Rebuilding has goroutines of its own, which Close ends and waits for. So has each session, and the follower of each cluster: it reads the head
// of the record each 250 ms while a watch of live is open. A watch runs in the goroutine of its request.
package apiserver

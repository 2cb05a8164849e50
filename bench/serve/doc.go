// Package serve has a server that gives a data.Set to clients as an API server would. It serves TLS and HTTP/2, discovery, and
// lists in pages. Watches begin at a resource version or with initial events (WatchList), and have bookmarks.
//
// # What it guarantees
//
//   - A client sees one history. A list at its resource version and a watch from there on show the same cluster, however often
//     a client comes again. All of the history can be watched.
//   - Sending costs little: frames are made before, and lie in files.
//   - Events of several resources come as they were written. Without a rate, no resource is more than Options.Window events
//     ahead of another. At a rate, each event comes when it is due.
//   - Nothing is written before Go is called. Without a rate, nothing is written before each resource is watched. From
//     Options.Gate on, nothing is written before Go is called again.
//   - The time at which an event was written is known: [Server.Times].
//
// # What it does not do
//
// It accepts no writes, and authenticates no client. Lists at exact resource versions in the past are refused as if etcd had been
// compacted. Items of lists have no apiVersion and kind; nor do those of custom resources. Objects expire, and conditions are
// probed, only as the Set has it.
//
// # Goroutines
//
// Those of net/http; they have ended when Close returns.
package serve

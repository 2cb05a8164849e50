// Package serve has a server that gives a data.Set to clients as an API server would: over TLS and HTTP/2, with discovery, lists in
// pages, and watches from a resource version on or with initial events (WatchList), with bookmarks.
//
// # What it guarantees
//
//   - A client sees one history. What a list shows at its resource version and what a watch tells from there on are the same cluster,
//     however often a client comes again. All of the history can be watched.
//   - What is sent costs little: frames are made before, and lie in files.
//   - Events of several resources come as they were written. As fast as clients read, no resource is more than Options.Window events
//     ahead of another; at a rate, each event comes when it is due. Nothing is written before Go is called, nor, as fast as clients
//     read, before each resource is watched, and nothing from Options.Gate on before Go is called again.
//   - When an event was written is known: [Server.Times].
//
// # What it does not do
//
// It takes no writes, and nobody has to say who he is. Lists at exact resource versions in the past are refused as if etcd had been
// compacted. Items of lists have no apiVersion and kind, those of custom resources neither. Objects expire, and conditions are
// probed, only as the Set has it.
//
// # Goroutines
//
// Those of net/http; they have ended when Close returns.
package serve

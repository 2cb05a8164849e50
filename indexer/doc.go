// Package indexer holds the objects of a cluster at one instant, compressed, behind client-go's cache.Indexer.
//
// # What it guarantees
//
//   - An Indexer satisfies cache.Indexer and cache.TransactionStore, and answers as client-go's own does, under concurrent
//     readers and writers. The differences are listed below.
//   - Readers never wait for an index function, a compression or a decoding: these are done before or after the moment in
//     which the store changes.
//   - An object is kept as canonical JSON (package patch), compressed, and decoded anew for each caller. The caller gets an
//     *unstructured.Unstructured, or what Options.Decode makes. He may change it; the store does not notice. Doc and All give
//     the text without decoding it.
//   - An index function that fails or panics gives an *IndexError. Add, Update, Replace, AddIndexers and Transaction return
//     it, and the store is as it was (client-go panics, with half of the indices changed).
//   - Indices can be added when objects are there. The built-in ones (namespace, label, owner, node, uid) are computed from
//     the text; other functions get what Get would give.
//   - A Snapshot has one Indexer for each resource. It may be filled from many goroutines.
//
// # Where it differs from client-go's
//
//   - Objects are values, not pointers. Get never gives the pointer that Add took. An object added as a *v1.Pod comes back as
//     an *unstructured.Unstructured unless Options.Decode says otherwise. Index functions see the same.
//   - Only objects with metadata can be kept: patch.Doc, []byte (JSON), and all that meta.Accessor takes.
//   - With Options.Lazy, an index is built when it is first asked for, so that filling costs nothing for it. If a function
//     fails then, Index, IndexKeys and ByIndex return its error, and try again at the next call. ListIndexFuncValues has no
//     error to return and gives nothing; IndexValues is the same with an error. Once built, the index is kept up like the
//     others.
//   - LastStoreSyncResourceVersion answers whatever client-go's feature gates say.
//
// # What it rejects, and why
//
// Objects without metadata, texts that are no JSON objects, and objects that Options.Decode cannot decode: List could not
// give them. A patch.Doc is trusted to be canonical; a []byte is checked.
//
// # What it costs
//
// Objects of one resource are much alike, so the first 32 KB of them become the dictionary for the rest. On Pods of 7 KB, per
// object (BenchmarkCodecs; one core of an AMD EPYC):
//
//	s2                 6.6 µs to pack, 2.1 µs to unpack, 3,540 bytes
//	s2, dictionary     5.6 µs          1.3 µs            1,055 bytes   ← this one
//	zstd, dictionary    25 µs          7.0 µs              725 bytes
//
// Of 20,000 Pods, each takes 1,300 bytes of memory with its key, and 2,900 if all five built-in indices were asked for. Half of
// that is for labels and UIDs. AddDoc takes 6 µs. To make an *unstructured.Unstructured of the text takes about as long as to
// copy one (BenchmarkRead). So List of everything is dear, and All is not.
//
// # Goroutines
//
// Building a built-in index uses one goroutine for each processor and waits for them. There are no others, and no knobs but
// Options.
package indexer

// Package indexer holds the objects of a cluster at one instant, compressed, behind client-go's cache.Indexer.
//
// # What it guarantees
//
//   - An Indexer satisfies cache.Indexer and cache.TransactionStore, and behaves as client-go's own does, under
//     concurrent readers and writers. The differences are listed below.
//   - Readers never wait for an index function, a compression or a decoding. The Indexer does these before or after the
//     moment in which the store changes.
//   - An object is kept as canonical JSON (package patch), compressed, and decoded for each caller. The caller gets an
//     *unstructured.Unstructured, or the result of Options.Decode, and may change it without an effect on the store.
//     Doc and All return the text without decoding it.
//   - If an index function fails or panics, Add, Update, Replace and AddIndexers return an *IndexError. The store is then
//     unchanged. Transaction skips such an operation and reports it. (client-go panics, with half of the indices changed.)
//   - Indices can be added to a store that has objects. The built-in ones (namespace, label, owner, node, uid) are
//     computed from the text; other functions get the same object as Get returns.
//   - A Snapshot has one Indexer for each resource. Many goroutines may fill it.
//
// # Where it differs from client-go's
//
//   - Objects are values, not pointers. Get never returns the pointer that Add got. An object added as a *v1.Pod is
//     returned as an *unstructured.Unstructured unless Options.Decode returns another type. Index functions get the
//     same.
//   - Only objects with metadata can be kept: patch.Doc, []byte (JSON), and everything that meta.Accessor accepts.
//   - With Options.Lazy, an index is built at its first use, so that it costs nothing while the store is filled. If a
//     function fails then, Index, IndexKeys and ByIndex return its error, and the next call tries again.
//     ListIndexFuncValues cannot return an error and returns nothing; IndexValues is the same with an error. Once
//     built, the index is maintained like the others.
//   - LastStoreSyncResourceVersion works whatever client-go's feature gates are.
//
// # What it rejects, and why
//
// Objects without metadata, texts that are no JSON objects, and objects that Options.Decode cannot decode, because List
// could not return them. A patch.Doc is trusted to be canonical; a []byte is checked.
//
// # What it costs
//
// Objects of one resource resemble each other, so the first 32 KB of them become the dictionary for the rest. On Pods
// of 7 KB, per object (BenchmarkCodecs; one core of an AMD EPYC):
//
//	s2                 6.6 µs to pack, 2.1 µs to unpack, 3,540 bytes
//	s2, dictionary     5.6 µs          1.3 µs            1,055 bytes   ← this one
//	zstd, dictionary    25 µs          7.0 µs              725 bytes
//
// Each of 20,000 Pods takes 1,300 bytes of memory with its key, and 2,900 if all five built-in indices were used. Half
// of that is for labels and UIDs. AddDoc takes 6 µs. To make an *unstructured.Unstructured of the text takes about as
// long as to copy one (BenchmarkRead). So List of everything is expensive, and All is not.
//
// # Goroutines
//
// Building a built-in index uses one goroutine for each processor and waits for them. There are no others, and no knobs
// except Options.
package indexer

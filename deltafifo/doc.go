// Package deltafifo holds the deltas of a cluster from the moment the recorder receives them until they are committed.
//
// A [Queue] belongs to one cluster. Each list-watch stream feeds it through a [FIFO] of its own. A FIFO is a
// cache.Queue with client-go's words: Added, Updated, Deleted, Replace, Resync, Pop, cache.Delta. One consumer drains
// the queue in batches (Next, Done, Requeue). Or, as with client-go, Pop drains each FIFO. A queue is drained in one of
// the two ways, never in both.
//
// # What it guarantees
//
//   - Order: entries come out in the order in which they went in, over all streams. Their Observed times do not
//     decrease in that order.
//   - Nothing is deduplicated, merged or dropped (I2). Bookmarks are the one exception, because they carry no delta. If
//     several bookmarks of a stream follow each other and wait, the queue keeps the last. While it spills, it keeps all.
//   - The queue removes an entry only after its commit: when Done says so, or when the process function of Pop has
//     succeeded (I1). Until then the queue holds and counts it. Requeue or a failed Pop hands it out again.
//   - Bounded in bytes: a call that enqueues blocks while its entry does not fit. Blocked calls go on in the order in
//     which they came, over all streams. With a Spool, a call blocks only while the spool is also full, or cannot be
//     written. If the queue holds nothing else, it accepts an entry larger than the bound. An object counts for the
//     Size() that it has after the transformer, or else for an estimate.
//   - A list is compared with the stream's state at the queue's tail: the known objects (KnownObjects), as changed by
//     the held entries. Only differences become deltas. Another UID under the same key is another life (I5). Every list
//     ends in one marker with its findings (I3). An object on the list that could not be read (Unreadable) has not
//     vanished.
//
// # Where it differs from client-go's queues
//
//   - Pop gives one delta. A DeltaFIFO gives all deltas of a key.
//   - A new or changed item of a list comes as Sync. Client-go gives Replaced. Entry.Source distinguishes a list from a
//     resync.
//   - Inferred deletions follow the items of their list. Client-go gives them first. A list comes page by page, and
//     only its end shows which objects are absent.
//   - One key is one object: of two items of a list with one key, the first is kept.
//   - Delete enqueues a delta, whether or not the object is known.
//   - There is no ReplacedAll and no SyncAll: a whole list as one item cannot be bounded.
//
// `make upstream` runs client-go's own tests on the queue. For each test that does not pass, it names the sentence that
// explains why.
//
// # Spilling
//
// A queue with Options.Spool spills in two cases: it is full, or its oldest entry has waited for long (SpillOverdue).
// It first writes all held entries to the spool, and from then on every new one. So the spool begins with the oldest
// entry that is not committed, and has the order of one log.
//
// If memory has room, the queue reads spooled entries back, up to half of the bound. The queue stops spilling when the
// whole spool is in memory again, half of the bound is free, no call waits, and no entry has waited for long. The spool
// is empty when the last of these entries is committed.
//
// Each transaction writes its Offset: the number of the first entry after the batch. So a later process knows exactly
// which entries are committed, even if the outcome of the last commit is unknown.
//
// If the spool cannot be written, callers wait for room in memory. Each call that finds the queue full tries to spill
// again. If the spool cannot be read back, Next returns the error, and the queue cannot be used any more. A new start
// goes on with the entries that it can read.
//
// A list can be compared with memory only. While some entries of its stream are on disk only, BeginReplace waits,
// Resync fails, and Tail.Vacant is false. During a list, the queue remembers the UID, resource version and digest of
// each spilled entry.
//
// After Close, entries that are on disk only stay there.
//
// The consumer changes KnownObjects first and calls Done afterwards. Otherwise the comparison is wrong.
//
// # Inside
//
//   - backlog: all entries of a queue, in one order. The first ones are in memory (memory), the rest on disk only
//     (spill, records).
//   - waiters: the calls that wait for room.
//   - sleeper: the conditions that wake a sleeping Next.
//   - feeder: makes entries for one FIFO.
//   - events, lists: receive the events of a watch, and the pages of lists.
//   - Tail: the state of a stream after all held entries are committed.
//
// One lock, the lock of the queue, protects the held entries. A call locks the feed of its stream first.
//
// # What it rejects, and why
//
//   - An object for which the transformer or the key function fails. The caller gets the error, and nothing is
//     enqueued. The reflector must not move its position past the object (I1).
//   - Add, Update, Delete and Bookmark between BeginReplace and EndReplace. They would store later versions before
//     earlier ones (I4), and move the position past pages that have not come yet (I1).
//   - Pages of two different resource versions in one replacement: an object that is absent from such a list has not
//     necessarily vanished.
//   - Every call after Close that enqueues, with cache.ErrFIFOClosed. Held entries can still be drained.
//
// # Goroutines
//
// The package starts none. Any goroutine may call any method. Calls that enqueue into one stream run one after the
// other, except InterruptTogether, which does not wait for them. The same holds for calls of Next, and for calls of Pop on one
// stream.
//
// # Knobs
//
//   - Options.MaxBytes, 256 MiB: the bound on held entries.
//   - Options.Spool, Codec, Left, OnSpill: the spool, and the entries that an earlier process left in it.
//   - Options.SpillAfter, 30 s: how long an entry may wait in memory only.
//   - Options.BookmarkLinger, 5 s: how long Next delays a batch that has nothing but bookmarks.
//   - Options.Now, time.Now: the clock that stamps entries.
//   - Next's maxItems, maxBytes and linger: how large a batch may become, and how long it may wait for more.
package deltafifo

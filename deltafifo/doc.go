// Package deltafifo holds what was seen of a cluster until it is committed.
//
// A [Queue] belongs to one cluster. Each list-watch stream feeds it through a [FIFO] of its own. A FIFO is a cache.Queue with
// client-go's words: Added, Updated, Deleted, Replace, Resync, Pop, cache.Delta. One consumer drains the queue in batches
// (Next, Done, Requeue). Or, as with client-go, Pop drains each FIFO. A queue is drained in one of the two ways, never in both.
//
// # What it guarantees
//
//   - Order: entries come out in the order in which they went in, over all streams. Their Observed times do not decrease in
//     that order.
//   - Nothing is deduplicated, merged or dropped (I2). Bookmarks are the one exception, because they carry no delta. Of
//     a stream's consecutive bookmarks that wait to be handed out, the queue keeps the last.
//   - An entry leaves only when Done says that it is committed, or when the process function given to Pop has succeeded
//     (I1). Until then the queue holds and counts it, and hands it out again after Requeue or a failed Pop.
//   - Bounded in bytes: a call that enqueues blocks while its entry does not fit. Waiting calls go on in the order in
//     which they came, over all streams. With a Spool, a call blocks only while the spool is also full, or cannot be
//     written. An entry larger than the bound is let in when the queue holds nothing else. The bytes of an object are its
//     Size() after the transformer ran, or else an estimate.
//   - A list is compared with the stream's state at the queue's tail: what is known (KnownObjects) as changed by what is
//     held. Only what differs becomes a delta. Another UID under the same key is another life (I5). Every list ends in one
//     marker that says what was found (I3). An object on the list that could not be read (Unread) has not vanished.
//
// # Where it differs from client-go's queues
//
//   - Pop gives one delta, where a DeltaFIFO gives all deltas of a key.
//   - An item of a list that is not known as it is comes as Sync, where client-go gives Replaced. Entry.Source tells a list
//     from a resync.
//   - Inferred deletions follow the items of their list, where client-go gives them first. A list comes page by page, and
//     only its end shows what is absent.
//   - One key is one object: of two items of a list with one key, the first is kept.
//   - Delete enqueues a delta, whether or not the object is known.
//   - There is no ReplacedAll and no SyncAll: a whole list as one item cannot be bounded.
//
// `make upstream` runs client-go's own tests on the queue, and names the sentence for each that does not pass.
//
// # Spilling
//
// The queue spills, if it has Options.Spool, when it is full or when its oldest entry has waited for long (SpillOverdue). It
// first writes all that it holds to the spool, and from then on everything that comes. So the spool begins with the oldest
// entry that is not committed, and has the order of one log.
//
// The queue reads back what was written as there is room in memory, up to half of the bound. It stops spilling when all of the
// spool is in memory again, and nothing of it has waited for long. The spool is empty when the last of that is committed.
//
// Each transaction writes its Offset: the number of the first entry behind it. So a later process knows exactly which entries
// are committed, also if the outcome of the last commit is unknown.
//
// If the spool cannot be written, callers wait for room in memory. Each call that finds the queue full tries to spill again.
// If the spool cannot be read back, Next returns the error, and the queue cannot be used any more: a new start goes on from
// what can be read.
//
// A list can be compared with memory only. While entries of its stream are on disk only, BeginReplace waits, Resync fails, and
// Tail.Vacant is false. What is spilled during a list is remembered by UID, resource version and digest.
//
// After Close, what is on disk only stays there.
//
// The consumer changes KnownObjects first and says Done afterwards. Otherwise the comparison is wrong.
//
// # Inside
//
//   - backlog: what a queue holds, in one order. Its beginning is in memory (memory), the rest on disk only (spill, records).
//   - line: the calls that wait for room.
//   - sleeper: what a Next that sleeps waits for.
//   - feeder: makes entries of what one FIFO is given.
//   - events, lists: take in what a watch serves, and what lists show.
//   - Tail: the state of a stream once all that is held is committed.
//
// One lock, that of the queue, protects what is held. A stream's feed is taken before it.
//
// # What it rejects, and why
//
//   - An object for which the transformer or the key function fails. The caller gets the error, and nothing is enqueued.
//     The reflector must not move its position past the object (I1).
//   - Add, Update, Delete and Bookmark between BeginReplace and EndReplace. They would store later versions before earlier
//     ones (I4), and move the position past pages that have not come yet (I1).
//   - Pages of two different resource versions in one replacement: what is absent from such a list has not necessarily
//     vanished.
//   - Every call after Close, with cache.ErrFIFOClosed. What is held can still be drained.
//
// # Goroutines
//
// The package starts none. Any goroutine may call any method. Calls that enqueue into one stream are taken one after the
// other. So are calls of Next, and calls of Pop on one stream.
//
// # Knobs
//
//   - Options.MaxBytes, 256 MiB: the bound on what is held.
//   - Options.Spool, Codec, Left, OnSpill: where to spill to, and what is there from a process before.
//   - Options.SpillAfter, 30 s: for how long an entry may wait in memory only.
//   - Options.BookmarkLinger, 5 s: for how long Next lets a batch wait that has nothing but bookmarks.
//   - Options.Now, time.Now: the clock that stamps entries.
//   - Next's maxItems, maxBytes and linger: how large a batch may become, and how long it may wait for more.
package deltafifo

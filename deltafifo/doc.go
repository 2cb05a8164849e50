// Package deltafifo holds what was seen of a cluster until it is committed.
//
// A [Queue] belongs to one cluster. Each list-watch stream feeds it through a [FIFO] of its own, which is a
// cache.Queue, so that whoever knows client-go's queues knows this one: Added, Updated, Deleted, Replace, Resync,
// Pop, cache.Delta. One consumer drains the queue in batches (Next, Done, Requeue); or, as with client-go, each
// FIFO is drained by Pop. A queue is drained in one of the two ways, never in both.
//
// # What it guarantees
//
//   - Order: entries come out in the order in which they went in, over all streams, and their Observed times do not
//     decrease in that order.
//   - Nothing is deduplicated, merged or dropped (I2). The one exception are bookmarks, which carry no delta: of
//     consecutive ones of a stream that wait to be handed out, only the last is kept.
//   - An entry leaves only when Done says that it is committed, or when the process function given to Pop has
//     succeeded (I1). Until then it is held, counted, and handed out again after Requeue or a failed Pop.
//   - Bounded in bytes: a call that enqueues blocks while its entry does not fit, and those that wait are let in
//     in the order in which they came, whichever stream they belong to. With a Spool, a call blocks only while that is full, too, or cannot
//     be written. An entry larger than the bound is let in
//     when the queue holds nothing else. The bytes of an object are its Size() after the transformer ran, or else
//     an estimate.
//   - A list is compared with the stream's state at the queue's tail: what is known (KnownObjects) as changed by
//     what is held. Only what differs becomes a delta; another UID under the same key is another life (I5); and
//     every list ends in one marker that says what was found (I3). What the list held and could not be read (Unread)
//     has not vanished.
//
// # Where it differs from client-go's queues
//
//   - Pop gives one delta, where a DeltaFIFO gives all deltas of a key.
//   - An item of a list that is not known as it is comes as Sync, where client-go gives Replaced. Entry.Source tells a list from
//     a resync.
//   - Inferred deletions follow the items of their list, where client-go gives them first. A list comes page by page, and only
//     its end shows what is absent.
//   - One key is one object: of two items of a list with one key, the first is kept.
//   - Delete enqueues a delta, whether or not the object is known.
//   - There is no ReplacedAll and no SyncAll: a whole list as one item cannot be bounded.
//
// `make upstream` runs client-go's own tests on the queue, and names the sentence for each that does not pass.
//
// # Spilling
//
// With Options.Spool, a queue that is full, or whose oldest entry has waited for long (SpillOverdue), writes all that it holds to the spool, and from then on everything that comes, before anything else: so the
// spool begins with the oldest entry that is not committed, and order is that of one log. What was written is read back as
// there is room in memory, up to half of the bound. The queue stops spilling when all of the spool is in memory again, and nothing of it has waited for long; the spool is empty when the
// last of that is committed. Committing notes in the spool's cursor up to where the record goes, before it goes there: a process that
// comes later knows exactly which entries are committed. Where the spool cannot be written, callers wait for room in memory, and each that comes
// when the queue is full tries again. Where it cannot be read back, Next returns the error and the queue is of no more use: a new start goes on from what can be read.
//
// A list can be compared with memory only: BeginReplace waits while entries of its stream are on disk only, Resync fails, and Vacant says
// no. What is spilled during a list is remembered by UID, resource version and digest.
//
// After Close, what is on disk only stays there.
//
// For the comparison to be right, the consumer changes KnownObjects first and says Done afterwards.
//
// # What it rejects, and why
//
//   - An object for which the transformer or the key function fails: the error goes to the caller, nothing is
//     enqueued, and the reflector must not move its position past it (I1).
//   - Add, Update, Delete and Bookmark between BeginReplace and EndReplace: later versions would be stored before
//     earlier ones (I4), and would move the position past pages that have not come yet (I1).
//   - Pages of two different resource versions in one replacement: what is absent from such a list has not
//     necessarily vanished.
//   - Every call after Close, with cache.ErrFIFOClosed. What is held can still be drained.
//
// # Goroutines
//
// The package starts none. Any goroutine may call any method. Calls that enqueue into one stream are taken one after
// the other; calls of Next likewise, and calls of Pop on one stream.
//
// # Knobs
//
//   - Options.MaxBytes, 256 MiB: the bound on what is held.
//   - Options.Spool, Codec, Left, Mark, OnSpill: where to spill to, and what is there from a process before.
//   - Options.SpillAfter, 30 s: for how long an entry may wait in memory only.
//   - Options.BookmarkLinger, 5 s: for how long Next lets a batch wait that has nothing but bookmarks.
//   - Options.Now, time.Now: the clock that stamps entries.
//   - Next's maxItems, maxBytes and linger: how large a batch may become, and how long it may wait for more.
package deltafifo

// Package reflector keeps a store fed with everything that happens to one
// resource: it lists it when it has to, watches it otherwise, and never moves
// on from a change that the store has not accepted.
//
// It has the seams of client-go's cache.Reflector: it takes a
// cache.ListerWatcher, feeds a cache.ReflectorStore, and calls the optional
// cache.ReflectorBookmarkStore and cache.ResourceVersionUpdater. It differs
// where a recorder must not lose what a cache may.
//
// # What it guarantees
//
//   - I1: the resource version from which the stream goes on moves only after
//     the store has returned nil for everything up to it. An error of any store
//     method ends that ListAndWatch; the same place is watched again after a
//     pause. A store that blocks holds the stream back.
//   - I2: every event that the server sends is handed over once, in the order
//     served. Several deletes can share one resource version; if the connection
//     breaks among them, the stream goes on before that version and leaves out
//     those that the store already has. Events that the server repeats unasked
//     are handed over: to leave them out is for who keeps the record.
//   - I3: every list is announced to a PagedStore with its cause, and every
//     stretch in which the stream cannot go on to an InterruptStore. Where the
//     server can still give the history, it is not listed: a stream starts from
//     a stored resource version, a clean end or a broken connection is followed
//     by another watch from the same place, and "410 Gone" is first tried on a
//     new connection, then, with RecoverRevisions, answered by lists at exact
//     revisions, which etcd can give after an API server cannot: what they show
//     is handed over as a watch would have, and the stream goes on only if each
//     revision is accounted for. Items of a list that cannot be read are told to an
//     UnreadStore: they have not vanished.
//   - A position does not age. If no bookmark moves it, it is moved, with
//     RecoverRevisions, to where it is proved that nothing has happened. The watch
//     stays open meanwhile. How often that is looked at follows the history that
//     etcd keeps (QuietEvery). A ProofStore is told that the position is proved.
//   - A stream does not go on in another history: with Options.History, it is
//     asked before each watch, and after a 410, whether the server's history is
//     still the one that was reflected. If it is not, or Reverse says so, the
//     store is told at once, and the list that must follow is begun only when
//     it is found truthful: its cause is history_reversed.
//   - A list is consistent: it is read at resource version "", in pages of one
//     snapshot. If the snapshot expires between pages, or a page is of another
//     one, AbortReplace is called and the list begins anew. Pages go to the
//     store as they come. The watch is opened at the first page's resource
//     version, so that a list which takes long does not outlive the history.
//   - A list ends: a continue token that comes again, or more than 100,000
//     pages, is an error.
//   - The store owns an object from the moment it gets it, and may change it:
//     what the position needs is read before (I1).
//   - I4: resource versions are compared only within this resource (what
//     Options.Revisions says of others is its own responsibility), with
//     apimachinery's resourceversion helper. Those that it cannot compare are
//     taken in order of arrival. The position goes back in one case: a list
//     whose cause is history_reversed, because it is older than what is recorded
//     or because of the above.
//
// # What it rejects, and why
//
//   - An event of another type than expected, a Table, or an object without
//     metadata: the stream is reopened at the same place and, when that place
//     fails five times in the same way while lists work, listed again with
//     cause undecodable. To log and go on would be a silent loss. From the
//     second of such failures on, the server does not count as unreachable.
//   - Resource versions "" and "0" of a list: a watch from there would not be a
//     continuation. The stream is interrupted with cause undecodable.
//   - WatchList (sendInitialEvents): it folds changes into the initial state,
//     and servers that ignore it never end it.
//
// # Who owns its goroutines
//
// Run works on the caller's goroutine. While further pages of a list come, one
// goroutine reads the watch ahead; the list that started it waits for it. So
// does a recovery for the few that ask at once.
// Nothing outlives Run, and every request is made with its context. A store
// that blocks must be unblocked by its owner when the context ends.
//
// # Knobs
//
// See Options. Fixed: a stream counts as working with its first event or after
// five seconds without an error; an interruption with cause unreachable is
// announced after 30 seconds; a page may take five minutes; a watch is read
// ahead up to 10,000 events or PageBytes; a list that twice lost its snapshot
// is read in one page; a recovery may take two minutes and 512 MiB of lists,
// four of one object at a time; eight may fail for reasons that may pass.
package reflector

// Package reflector keeps a store fed with everything that happens to one resource: it lists it when it has to, watches it
// otherwise. It never moves on from a change that the store has not accepted.
//
// It has the seams of client-go's cache.Reflector. It takes a cache.ListerWatcher, feeds a cache.ReflectorStore, and calls the
// optional cache.ReflectorBookmarkStore and cache.ResourceVersionUpdater. It differs where a recorder must not lose what a
// cache may.
//
// # What it guarantees
//
//   - I1: the resource version from which the stream goes on moves only after the store has returned nil for everything up
//     to it. An error of any store method ends that ListAndWatch; the same place is watched again after a pause. A store
//     that blocks holds the stream back.
//   - I2: every event that the server sends is handed over once, in the order served. Several deletes can share one
//     resource version. If the connection breaks among them, the stream goes on before that version, and leaves out those
//     that the store already has. Events that the server repeats unasked are handed over: the store's owner leaves them
//     out.
//   - I3: every list is announced to a PagedStore with its cause. Every stretch in which the stream cannot go on is
//     announced to an InterruptStore. The stream is not listed while the server can still give the history (see below).
//   - Items of a list that cannot be read are told to an UnreadStore: they have not vanished.
//   - A position does not age. If no bookmark moves it, RecoverRevisions lets the reflector move it to where it is proved
//     that nothing has happened. The watch stays open meanwhile. How often the reflector looks follows the history that
//     etcd keeps (QuietEvery). A ProofStore is told that the position is proved.
//   - A stream does not go on in another history. Before each watch, and after a 410, Options.History is asked whether the
//     server's history is still the one that was reflected. If it is not, or Reverse says so, the store is told at once.
//     The list that must follow begins only when History finds it truthful. Its cause is history_reversed.
//   - A list is consistent: it is read at resource version "", in pages of one snapshot. If the snapshot expires between
//     pages, or a page is of another one, AbortReplace is called and the list begins anew. Pages go to the store as they
//     come. The watch is opened at the first page's resource version, so that a list which takes long does not outlive the
//     history.
//   - A list ends: a continue token that comes again, or more than 100,000 pages, is an error.
//   - The store owns an object from the moment it gets it, and may change it. The reflector reads what the position needs
//     before that (I1).
//   - I4: resource versions are compared only within this resource, with apimachinery's resourceversion helper. Those that
//     it cannot compare are taken in order of arrival. What Options.Revisions says of other resources is its own
//     responsibility.
//   - The position goes back in one case: a list whose cause is history_reversed. Either the list is older than what is
//     recorded, or the history was found to be another one.
//
// # How a stream goes on without a list
//
//   - A stream starts from a stored resource version.
//   - After a clean end or a broken connection, it watches again from the same place.
//   - After "410 Gone", it first tries again on a new connection.
//   - Then, with RecoverRevisions, it lists at exact revisions, which etcd can give after an API server cannot. What these
//     lists show is handed over as a watch would have. The stream goes on only if each revision is accounted for.
//
// # What it rejects, and why
//
//   - An event of another type than expected, a Table, or an object without metadata. The stream is reopened at the same
//     place. If that place fails five times in the same way while lists work, the stream is listed again with cause
//     undecodable. To log and go on would be a silent loss. From the second of such failures on, the server does not count
//     as unreachable.
//   - Resource versions "" and "0" of a list: a watch from there would not be a continuation. The stream is interrupted
//     with cause undecodable.
//   - WatchList (sendInitialEvents): it folds changes into the initial state, and servers that ignore it never end it.
//
// # Its parts
//
// The Reflector owns the loop and the watch. Each part owns the data of one question, and knows only parts further up in this
// list:
//
//   - source: what the server is asked: pages, watches, new connections.
//   - retries: how long to pause after a failure.
//   - place: where the stream is, and whether that is recorded.
//   - health: whether the stream can go on, and what the store was told of that.
//   - quiet: how old the position is, and when to look.
//   - delivery: brings an event to the store, then moves the place.
//   - timeline: whether the server's history is still the one that was reflected.
//   - lister: which list is due, and bringing it to the store.
//   - recoverer: history that no watch can give.
//
// # Who owns its goroutines
//
// Run works on the caller's goroutine. While further pages of a list come, one goroutine reads the watch ahead. The list that
// started it waits for it. A recovery waits in the same way for the few goroutines that ask at once. Nothing outlives Run, and
// every request is made with its context. A store that blocks must be unblocked by its owner when the context ends.
//
// # Knobs
//
// See Options. These are fixed:
//
//   - A stream counts as working with its first event, or after five seconds without an error.
//   - An interruption with cause unreachable is announced after 30 seconds.
//   - A page may take five minutes.
//   - A watch is read ahead up to 10,000 events or PageBytes.
//   - A list that twice lost its snapshot is read in one page.
//   - A recovery may take two minutes and 512 MiB of lists. It asks for four lists of one object at a time.
//   - Eight attempts of a recovery may fail for reasons that may pass.
package reflector

// Package reflector feeds a store with everything that happens to one resource. It lists the resource when it has to, and
// watches it otherwise. It never moves on from a change that the store has not accepted.
//
// It has the interfaces of client-go's cache.Reflector. It takes a cache.ListerWatcher, feeds a cache.ReflectorStore,
// and calls the optional cache.ReflectorBookmarkStore and cache.ResourceVersionUpdater. A cache may lose events and a
// recorder must not; there the two differ.
//
// # What it guarantees
//
//   - I1: the stream's resource version moves only after the store has returned nil for everything up to it. An error
//     of any store method ends that ListAndWatch. After a pause, the reflector watches the same place again. A store
//     that blocks also blocks the stream.
//   - I2: the store gets every event of the server, in the order served. Several deletes can share one
//     resource version. If the connection breaks among them, the stream goes on before that version, and skips the
//     deletes that the store already has. Events that the server repeats without need go to the store, too: the owner
//     of the store skips them.
//   - I3: the reflector announces every list to a PagedStore, with its cause. It announces every time in which the
//     stream cannot go on to an InterruptStore. It does not list while the server can still give the history (see
//     below).
//   - An UnreadableStore learns which items of a list could not be read: they have not vanished.
//   - A position does not age. If no bookmark moves it, RecoverRevisions lets the reflector move it to a version up to
//     which it has proved that nothing happened. The watch stays open meanwhile. How often the reflector looks depends
//     on the history that etcd keeps (QuietEvery). A ProofStore learns that the position is proved.
//   - A stream does not go on in another history. Before each list, before each watch that no list precedes, and
//     after a 410, the reflector asks Options.History whether the server's history is still the same. If it is not,
//     or if ReportRollback says so, the store learns it at once. The list that must follow begins only when History
//     accepts it (CheckList). Its cause is history_reversed.
//   - A list is consistent: it is read at resource version "", in pages of one snapshot. If the snapshot expires
//     between pages, or a page has another version, the reflector calls AbortReplace and starts the list over. Pages go
//     to the store as they come. The reflector opens the watch at the first page's resource version, so that the
//     history does not expire during a long list.
//   - A list ends: a repeated continue token, or more than 100,000 pages, is an error.
//   - The store owns an object from the moment it gets it, and may change it. The reflector reads the fields for its
//     position before that (I1).
//   - I4: resource versions are compared only within this resource, with apimachinery's resourceversion helper. If it
//     cannot compare two versions, their order of arrival counts. Options.Revisions is responsible for what it says
//     about other resources.
//   - The position goes back in one case: a list with cause history_reversed. Then the list is older than the record,
//     or History has found another history.
//
// # How a stream goes on without a list
//
//   - A stream starts from a stored resource version.
//   - After a clean end or a broken connection, it watches again from the same place.
//   - After "410 Gone", it first tries again on a new connection.
//   - Then, with RecoverRevisions, it lists at exact revisions, which etcd can give after an API server cannot. The
//     store gets the changes that these lists show, as from a watch. The stream goes on only if each revision is
//     accounted for.
//
// # What it rejects, and why
//
//   - An event of another type than expected, a Table, or an object without metadata. The reflector opens the stream
//     again at the same place. If that place fails five times in the same way while lists work, the stream is listed
//     again with cause undecodable. To log and go on would be a silent loss. From the second of such failures on, the
//     server does not count as unreachable.
//   - Resource versions "" and "0" of a list: a watch from there would not be a continuation. The stream is interrupted
//     with cause undecodable.
//   - WatchList (sendInitialEvents): it folds changes into the initial state, and servers that ignore it never end it.
//
// # Its parts
//
// The Reflector owns the loop and the watch. Each part owns the data of one question, and knows only parts further up
// in this list:
//
//   - source: the requests to the server: pages, watches, new connections.
//   - retries: how long to pause after a failure.
//   - place: how far the reflector has come, and whether that is recorded.
//   - health: whether the stream can go on, and what the store knows about that.
//   - quiet: how old the position is, and when to look.
//   - delivery: gives an event to the store, then moves the place.
//   - timeline: whether the server's history is still the same. It is not the page of that name.
//   - lister: which list is due; gives it to the store.
//   - recoverer: history that no watch can give.
//
// # Who owns its goroutines
//
// Run works on the caller's goroutine. While further pages of a list come, one goroutine reads the watch ahead. The
// list that started it waits for it. In the same way, a recovery waits for its few goroutines that send requests in
// parallel. No goroutine outlives Run, and every request uses Run's context. If a store blocks, its owner must unblock
// it when the context ends.
//
// # Knobs
//
// See Options. These are fixed:
//
//   - A stream counts as working with its first event, or after five seconds without an error.
//   - An interruption with cause unreachable is announced after 30 seconds. One with cause forbidden or unauthorized is
//     announced at once; if the stream is recorded, after ten seconds.
//   - A page may take five minutes.
//   - A watch is read ahead up to 10,000 events or PageBytes.
//   - A list that twice lost its snapshot is read in one page.
//   - A recovery may take two minutes and 512 MiB of lists. It requests four lists of one object at a time.
//   - Eight attempts of a recovery may fail for temporary reasons.
package reflector

// Package feed delivers the deltas of a record to watches, up to a seq that moves.
//
// # What it guarantees
//
//   - A Reader delivers each delta of its scope after the seq where it began, once and in order. It delivers no delta above the Feed's
//     seq.
//   - While a Reader is behind the deltas that the Feed keeps, it reads the record, at the pace of its caller. It holds no database
//     connection while the caller works.
//   - When it has caught up, it joins the Feed: Advance reads each delta once for all joined Readers. The Feed keeps the last 16 MiB of
//     deltas, for all Readers together. If a joined Reader falls behind these, it ends with ErrBehind.
//   - After a seek forward, all Readers catch up by themselves. A seek backward ends them with ErrBackward.
//   - If a list closed a gap, the end of the gap comes in its place, as an Event with a Relist. If the list brought no delta, the caller
//     of SeekTo or Advance says when it comes.
//
// # What it rejects, and why
//
// A delta that cannot be folded is an Event with an error. It is not skipped, because the watch's client must list again.
//
// # Goroutines
//
// None. Only one goroutine may move a Feed, and only one may use each Reader.
package feed

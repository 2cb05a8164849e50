// Package feed gives watches the deltas of a record up to a seq that moves.
//
// # What it guarantees
//
//   - A Reader gives each delta of its scope after the seq where it began: once, and in order. It gives no delta above the feed's seq.
//   - While a Reader is behind what the Feed keeps, it reads the record, at the pace of its caller. It keeps no connection to the database
//     while the caller works.
//   - When it has caught up, it joins the Feed: Advance reads each delta once for all who have joined. The Feed keeps the last 16 MiB of
//     deltas, for all Readers together. A Reader that has joined and falls behind that ends with ErrBehind.
//   - A seek forward lets all Readers catch up by themselves. A seek backward ends them with ErrBackward.
//   - The end of a gap that a list closed comes in its place, as an Event with a Relist. If the list brought no delta, who moves the Feed says
//     when it comes.
//
// # What it rejects, and why
//
// A delta that cannot be folded is an Event with an error, and not left out: who watches must list again.
//
// # Goroutines
//
// None. One goroutine moves a Feed; each Reader is used by one.
package feed

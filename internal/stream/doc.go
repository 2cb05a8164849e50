// Package stream is how one resource becomes entries of the queue: what is on record of it, the run that lists and watches it, and what
// of it is recorded.
//
// A [Stream] lasts as long as the process. A [Run] is one reflector with its FIFO. A [Set] opens streams, one for each resource, and
// a [Launcher] begins and ends their runs.
//
//	         Set.Open
//	            │        Launch with a definition's beginning, or a position
//	            ▼       ┌──────────────────────────────────┐
//	┌──────▶ (no run) ──┤                                  ▼
//	│           ▲       │ Launch with a list            following ◀────────┐
//	│           │       ▼                                │      │          │
//	│           │    listing ──── EndReplace ────────────▶      │ Interrupted
//	│           │       ▲                                       ▼          │
//	│           │       └──────── BeginReplace ────────── interrupted ─ Resumed
//	│           │
//	│           └── Halt: the next Launch takes over listing, interrupted and position
//	│
//	└── End, when the resource is not served any more: complete, closed by an empty list, or interrupted
//
// lifecycle.Decide says which of them Launch and End do. [Stream.Facts] are what it needs to know of a stream.
//
// # What it guarantees
//
//   - A gap is queued before what a list shows (I3), and has the cause that the recorder knows, if that says more than the server's.
//   - What is left out by the rules moves the position past it, and the decision is on record with that or before.
//   - What must not be kept is replaced before it enters the queue (I9).
//   - An entry is dated by the stream: what was missed happened within the pause.
//
// # Who owns what
//
// Set.opening is held while a stream is opened, and Set.mu protects which are open. No lock is held while the queue is called.
//
// Each run has a goroutine, which its Halt waits for. It owns the decisions and the standing of the stream until it has ended; between
// two runs, the caller of Launch and End owns them. The goroutine that encodes owns the dating ([Items]). Stream.mu protects which run
// there is, and the excuse. Run.mu protects how the resource has left. The exclusions of a stream have a lock, since the queue takes it.
package stream

// Package stream turns one resource into entries of the queue. It knows the resource's part of the record, runs its
// list and watch, and decides which objects are recorded.
//
// A [Stream] lasts as long as the process. A [Run] is one reflector with its FIFO. A [Set] opens streams, one for each
// resource. A [Launcher] starts and ends their runs.
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
// lifecycle.Decide chooses among the ways in which Launch and End work. [Stream.Facts] returns the facts of a stream
// for it.
//
// # What it guarantees
//
//   - A gap is queued before the items of a list (I3). If the recorder knows a more precise cause than the server's,
//     the gap has that cause.
//   - An object that the rules exclude still moves the position past it. The decision is recorded together with that
//     position, or before.
//   - A value that must not be kept is replaced before it enters the queue (I9).
//   - The stream dates its entries: a change that it missed happened within the pause.
//
// # Who owns what
//
// Set.opening is held while a stream is opened, and Set.mu protects the open streams. No lock is held while the queue
// is called.
//
// Each run has a goroutine, and Halt waits for it. The run owns the decisions and the standing of the stream until it
// has ended. Between two runs, the caller of Launch and End owns them. The goroutine that encodes owns the dating
// ([Items]). Stream.mu protects the current run and the expiry cause. Run.mu protects the state of a resource that is
// gone. The exclusions of a stream have a lock, because the queue takes them.
package stream

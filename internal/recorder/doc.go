// Package recorder is the composition root. It wires kube, reflector, deltafifo and sink/postgres into a recorder of one
// cluster. It adds what lies between them: filter, redaction, and when a delta occurred.
//
// Rooms of one purpose each stand beside it, and none of them imports it: cluster, database, election, notices, clock, lifecycle,
// spooling, schemacheck, sweep and documents.
//
// It opens the spool of its cluster. The head of the record shows which entries of the spool are committed, and the recorder
// goes on behind those.
//
// # What it guarantees
//
//   - An entry leaves the queue only when its transaction is committed (I1).
//   - What must not be kept never enters the queue (I9).
//   - When its context ends, Run stops the streams, writes what is queued within the drain timeout, and returns when every
//     goroutine has (I7).
//
// # Goroutines
//
// Run owns them all:
//
//   - one for the reflector of each stream;
//   - one that encodes and one that commits;
//   - one that keeps the database running, and one that spills what waits for long;
//   - one for discovery;
//   - one for what the server says of itself (documents);
//   - one that checks whether its history is the one on record;
//   - one that measures how much of it etcd keeps;
//   - one that compares objects whose schema has changed (schemacheck);
//   - one that watches the clocks (clock);
//   - one for checkpoints;
//   - one that counts for the timeline;
//   - one for the daily sweep (sweep, I8);
//   - one that renews the leadership (election);
//   - one for Events (notices);
//   - one for the metrics address.
package recorder

// Package recorder is the composition root. It wires kube, reflector, deltafifo and sink/postgres into a recorder of one
// cluster.
//
// Rooms of one purpose each stand beside it, and none of them imports it:
//
//   - stream, resources, pump, spooling and canonical: from the server to the record.
//   - lifecycle, rollback, schemacheck and sweep: what is decided, and found.
//   - cluster, database, election, succession and clock: what it works with.
//   - documents, reporting and notices: what is said.
//
// It has surroundings before it opens the record: cluster, database, notices and the metrics address. A standby has them, too.
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
//   - One for the reflector of each stream.
//   - One that encodes and one that commits.
//   - One that keeps the database running, and one that spills what waits for long.
//   - One for discovery.
//   - One for what the server says of itself (documents).
//   - One that checks whether its history is the one on record, and one that measures how much of it etcd keeps (rollback).
//   - One that waits for the news that another cluster answers.
//   - One that compares objects whose schema has changed (schemacheck).
//   - One that watches the clocks (clock).
//   - One for checkpoints.
//   - One that counts for the timeline.
//   - One for the daily sweep (sweep, I8).
//   - One that renews the leadership (election).
//   - One for Events (notices).
//   - One for the metrics address.
package recorder

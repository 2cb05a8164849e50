// Package recorder is the composition root. It wires kube, deltafifo, sink/postgres and the packages below into a recorder of
// one cluster.
//
// It uses packages that have one purpose each. None of them imports this package:
//
//   - stream, resources, pump, spooling and canonical carry deltas from the server to the record.
//   - lifecycle, rollback, schemacheck and sweep make decisions and detect special cases.
//   - cluster, database, election, succession and clock are the environment.
//   - documents records what the server says about itself. reporting and notices report.
//
// Before it opens the record, the recorder opens its surroundings: cluster, database, notices and the metrics address. A standby has
// them, too.
//
// The recorder opens the spool of its cluster. The head of the record shows which entries of the spool are committed, and the
// recorder resumes after those.
//
// # What it guarantees
//
//   - An entry is removed from the queue only after its transaction is committed (I1).
//   - Values that must not be kept never enter the queue (I9).
//   - When its context ends, Run stops the streams and writes the queued entries within the drain timeout. It returns when every
//     goroutine has ended (I7). One exception: if closing the database connections takes longer than two seconds, Run does not wait.
//
// # Goroutines
//
// Run owns them all:
//
//   - One for the reflector of each stream, one for each open watch (kube), and one for each resource that ends (resources).
//   - One that waits until the streams of the start follow the server.
//   - One that encodes and one that commits.
//   - One that keeps the database running, and one that spills entries that have waited for long.
//   - Those of discovery (kube.Follower).
//   - One that records discovery, OpenAPI and the version of the server (documents).
//   - One that checks whether etcd's history is the one on record, and one that measures how much of it etcd keeps (rollback).
//   - One that ends the recorder if another cluster answers at the address (cluster).
//   - One that compares objects whose schema has changed (schemacheck).
//   - One that watches the clocks (clock).
//   - One for checkpoints.
//   - One that counts for the timeline.
//   - One for the daily sweep (sweep, I8).
//   - One for the leader's row, one for the Lease, and one that watches both (election).
//   - One for Events (notices).
//   - One for the metrics address.
package recorder

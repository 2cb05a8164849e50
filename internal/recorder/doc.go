// Package recorder is the composition root. It wires kube, reflector, deltafifo and sink/postgres into a recorder of one
// cluster. It adds what lies between them: filter, redaction, and when a delta occurred.
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
//   - one for discovery;
//   - one for what the server says of itself;
//   - one that checks whether its history is the one on record;
//   - one that measures how much of it etcd keeps;
//   - one for checkpoints;
//   - one that counts for the timeline;
//   - one for the daily sweep (I8);
//   - one for the metrics address.
package recorder

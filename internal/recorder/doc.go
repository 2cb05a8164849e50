// Package recorder is the composition root: it wires kube, reflector, deltafifo and sink/postgres into a recorder of one
// cluster, and adds what lies between them: filter, redaction, and when a delta occurred.
//
// It opens the spool of its cluster, finds out by the head of the record which of its entries are committed, and goes on behind the others.
//
// It guarantees that an entry leaves the queue only when its transaction is committed (I1), that what must not be kept
// never enters the queue (I9), and that Run, when its context ends, stops the streams, writes what is queued within the
// drain timeout, and returns when every goroutine has (I7).
//
// Goroutines: one per stream, for its reflector; one that encodes and one that commits; one for discovery; one for what
// the server says of itself; one that looks whether its history is the one on record; one that measures how much of it etcd
// keeps; one for checkpoints; one that counts for the timeline; one for the daily sweep (I8); one for the metrics address. Run owns them all.
package recorder

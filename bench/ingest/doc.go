// Package ingest measures the way of a delta from the socket to committed rows: how many a second, what they cost in CPU time, on disk
// and in the log, and how long one takes. The recorder that is measured is the program as it is shipped; what it is compared with
// are programs that a user would write instead, which are parts of this one.
//
// Each run has a server of a data.Set, the one under test, and PostgreSQL, each in processes of its own, and a database of
// its own. It waits for the first lists to be on record and all watches to be open; then events are written, and the clock runs until the last of them is committed.
//
// Where the recorder's sweep and checkpoints are weighed, the last events are held back until everything is read that the others took. A checkpoint is made that does not count,
// the recorder records the rest and ends, and what counts is the next checkpoint, which is made of the one before and the deltas since.
package ingest

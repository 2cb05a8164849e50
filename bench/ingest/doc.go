// Package ingest measures the path of a delta from the socket to committed rows: how many deltas pass in a second, and
// how long one takes. It also measures their CPU time, and their bytes on disk and in the log. The measured recorder is the program as
// it is shipped. Its rivals are programs that a user would write instead; they are parts of this program.
//
// Each run has a server of a data.Set, the program under test, and PostgreSQL. Each has processes of its own, and each run has
// a database of its own. The run waits until the first lists are on record and all watches are open. Then events are written,
// and the clock runs until the last of them is committed.
//
// To weigh the recorder's sweep and checkpoints, the run holds the last events back until all figures of the others are read.
// It makes a checkpoint that does not count. The recorder then records the held events and ends. The next checkpoint counts: it
// is made from the previous one and the deltas since.
package ingest

// Package activity counts deltas ahead, so that the strip of a wide window needs no scan of the deltas.
//
// The counts are rows of the table activity. They say how many deltas of each resource, namespace, proved manager and class
// occurred in each minute and in each hour. A block covers up to 4,096 consecutive seqs of one UTC day of observed_at. It has
// five rows: by minute; by hour; both again for all namespaces and managers together; and each delta by itself. Strips without
// a filter for namespaces and managers read the rows for all of them, which have a tenth as many counts.
//
// # What it guarantees
//
//   - A count equals that of the SQL in docs/timeline.md. The strip and the counter both get the class from package marks.
//   - A block never changes, because its deltas do not, and no class depends on another day.
//   - Pruning a day deletes its blocks. An erasure deletes the blocks of each day that it changed.
//   - Blocks do not overlap, and each has its five rows: one transaction writes them, under a lock that admits one writer.
//   - A strip ignores blocks of another version of the classifier. The counter replaces them.
//   - No answer depends on the counts. Without them, every answer is the same, but slower.
//   - The patches of 2,048 deltas bound memory. A rest after each block, as long as the block took, bounds work.
//
// A reader uses whole blocks, and reads the deltas between and after them. A delta that was recovered after a pause occurred
// long before the rest of its block. It counts in the minute in which it occurred, as docs/timeline.md says.
//
// # The form
//
// Measurements decided the form. In the recorded scene (ten minutes of a control plane), 1,361 deltas make 289 counts by minute
// and 140 by hour. In the generated fleet (an hour of 2,000 objects), 61,924 deltas make 12,214 and 945. A table with one row
// for each count would take 170 bytes for each, with its index: 5.4 % and 3.6 % of the bytes of the deltas. In arrays, a count
// takes 13 to 21 bytes. In the fifth row, a delta takes about three. Together that is:
//
//	go test -run xxx -bench Counting -benchtime 5x ./timeline/activity
//	the recorded scene     1.28 % of the deltas' bytes
//	a generated fleet      0.86 %
//
// The CPU of the counter and of PostgreSQL together was 12.7 and 13.5 µs a delta before the fifth row, on two busy cores. The
// fifth row adds some 7 %: 31.4 µs instead of 29.4 for the fleet, one after the other on a machine half as fast.
//
// # What it rejects, and why
//
// A login that may not become kuberewind_counter counts nothing: a counter with other rights could change the record. The
// counter logs that once, and retries.
//
// # Goroutines and knobs
//
// Run and CountDue work on the goroutine of their caller. The knobs are in Options.
package activity

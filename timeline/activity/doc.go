// Package activity counts deltas ahead, so that the strip of a wide window is there at once.
//
// The data are the rows of the table activity: how many deltas of each resource, namespace, proved manager and class occurred in each minute and
// in each hour. A block is of up to 4,096 seqs that follow each other, all of one UTC day of observed_at. It has four rows: by minute and by hour, and the same for
// all namespaces and managers together. Strips without a filter for these read the latter, which are a tenth as long.
//
// # What it guarantees
//
//   - A count is that of the SQL in docs/timeline.md. The package marks tells the class, for the strip and for the counter alike.
//   - A block never changes, because its deltas do not, and no class depends on another day.
//   - A block goes with its day. An erasure drops the blocks of each day that it changed.
//   - Blocks do not overlap, and each has its five rows: one transaction writes it, under a lock that admits one writer.
//   - Blocks of another version of the classifier are not used. The counter puts its own in their place.
//   - Nothing depends on the counts. Without them every answer is the same, only slower.
//   - Memory is bounded by the patches of 2,048 deltas. Work is bounded by a rest after each block, as long as the block took.
//
// A reader uses blocks whole, and reads the deltas between and behind them. A delta that was caught up on occurred in a minute long before its block: it
// is counted there, as docs/timeline.md says.
//
// # The form
//
// It was chosen by counting. In the recorded scene, ten minutes of a control plane, 1,361 deltas make 289 counts by minute and 140 by hour. In the generated
// fleet, an hour of 2,000 objects, 61,924 deltas make 12,214 and 945. A table with a row for each count would take 170 bytes for each with its
// index: 5.4 % and 3.6 % of the bytes of the deltas. As arrays, a count takes 13 to 21 bytes. In the fifth row a delta takes some three. Together that is:
//
//	go test -run xxx -bench Counting -benchtime 5x ./timeline/activity
//	the recorded scene     1.28 % of the deltas' bytes
//	a generated fleet      0.86 %
//
// The CPU is that of the counter and of PostgreSQL together. It was 12.7 and 13.5 µs a delta before the fifth row, on two busy cores. The fifth row adds some
// 7 %: of the fleet 31.4 µs in the place of 29.4, one after the other on a machine half as fast.
//
// # What it rejects, and why
//
// A login that may not become kuberewind_counter counts nothing. The counter says so once, and tries again: a counter with other rights could change the record.
//
// # Goroutines and knobs
//
// Run and CountDue work on the goroutine of their caller. The knobs are in Options.
package activity

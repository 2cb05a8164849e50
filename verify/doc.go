// Package verify checks a record: that it holds by itself, and that nobody has changed it.
//
// # What it guarantees
//
//   - Record folds each version and compares it with its digest (I6). It checks what the rows, days, partitions, lives, streams and
//     checkpoints say of each other. It reads what an auditor may read, and holds no transaction for long.
//   - Chain computes the digest of each batch again, from the tables alone, with the code that wrote it (internal/chain). It reads
//     in one snapshot, with a login that may read the tables.
//   - Both only read, also while a recorder writes. What they find wrong is a finding or a break, and no error.
//
// Record finds what was wrong when it was written, and Chain finds what was changed since. So a record holds if both find nothing.
//
// The two go through the record separately. They read different columns, through different rights, and Record would hold the
// snapshot of Chain for as long as it folds.
//
// # Goroutines
//
// It starts none.
package verify

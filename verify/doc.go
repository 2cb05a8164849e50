// Package verify checks that a record is consistent, and that it was not changed.
//
// # What it guarantees
//
//   - Record folds each version and compares it with its digest (I6). It checks rows, days, partitions, lives, streams and
//     checkpoints against each other. It reads what an auditor may read, and holds no transaction for long.
//   - Chain computes the digest of each batch again, from the tables alone, with the code that wrote it (internal/chain). It reads
//     in one snapshot, with a login that may read the tables.
//   - Both only read, also while a recorder writes. If they find something wrong, they return a finding or a break, not an error.
//
// Record finds errors from the time of writing. Chain finds later changes. So a record is sound if both find nothing.
//
// The two read the record separately. They read different columns, with different rights. If they were one, Record would hold the
// snapshot of Chain for as long as it folds.
//
// # Goroutines
//
// The package starts none.
package verify

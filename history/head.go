package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Head names a commit of a record by its number and its digest, which covers every commit up to this one. As text it is
// N:HEX.
type Head struct {
	Batch  int64 // from 1
	Digest [sha256.Size]byte
}

// ErrHead says that a text is not a head.
var ErrHead = errors.New("not a head of the chain")

// String returns N:HEX, as ParseHead reads it.
func (h Head) String() string { return fmt.Sprintf("%d:%x", h.Batch, h.Digest) }

// ParseHead reads N:HEX: the number of a commit, from 1, and its digest in 64 hexadecimal digits. The error is ErrHead.
func ParseHead(text string) (h Head, err error) {
	number, digits, found := strings.Cut(strings.TrimSpace(text), ":")
	if !found {
		return h, fmt.Errorf("%w: %q: use N:HEX, as recorder head prints it", ErrHead, text)
	}
	if h.Batch, err = strconv.ParseInt(number, 10, 64); err != nil || h.Batch < 1 {
		return Head{}, fmt.Errorf("%w: %q: before the colon, use the number of a commit, from 1", ErrHead, text)
	}
	digest, err := hex.DecodeString(digits)
	if err != nil || len(digest) != sha256.Size {
		return Head{}, fmt.Errorf("%w: %q: after the colon, use %d hexadecimal digits", ErrHead, text, 2*sha256.Size)
	}
	copy(h.Digest[:], digest)
	return h, nil
}

// Commits reads the chain of commits of a record.
type Commits struct{ view *view }

// Commits returns the reader of the chain of commits.
func (r *Record) Commits() Commits { return Commits{view: r.view} }

// Head returns the newest commit. Its number is 0 if nothing is recorded yet.
func (c Commits) Head(ctx context.Context) (h Head, err error) {
	var digest []byte
	err = c.view.db.QueryRow(ctx, `SELECT batch, digest FROM kuberewind.record_heads WHERE cluster = $1`, c.view.cluster.Number).Scan(&h.Batch, &digest)
	if err != nil {
		return Head{}, fmt.Errorf("read the head of the chain: %w", err)
	}
	copy(h.Digest[:], digest)
	return h, nil
}

// A HeadOutcome says how a kept head compares with the record.
type HeadOutcome string

const (
	// HeadEqual says that the commit is on record with this digest.
	HeadEqual HeadOutcome = "equal"
	// HeadDifferent says that the commit has another digest, or is missing.
	HeadDifferent HeadOutcome = "different"
	// HeadPruned says that the commit was dropped with its day, and no remaining row has its digest.
	HeadPruned HeadOutcome = "pruned"
)

// A HeadComparison is the result of CompareHead.
type HeadComparison struct {
	Outcome HeadOutcome
	Found   []byte    // the digest on record; nil if there is none
	Newest  int64     // number of the newest commit on record
	Day     time.Time // UTC day that was dropped with the commit; zero if the commit was not dropped
	// FromPrune says that Found comes from the row of a prune. The chain of digests does not cover such a row.
	FromPrune bool
}

// CompareHead compares a head that was kept outside the database with the commit of that number. It does not compare the
// rows with the chain: package verify does that. The auditor's role may call it.
func (c Commits) CompareHead(ctx context.Context, kept Head) (compared HeadComparison, err error) {
	newest, err := c.Head(ctx)
	if err != nil {
		return compared, err
	}
	compared.Newest = newest.Batch
	err = c.view.db.QueryRow(ctx, `SELECT digest FROM kuberewind.record_batches WHERE cluster = $1 AND batch = $2`, c.view.cluster.Number, kept.Batch).Scan(&compared.Found)
	if isNoRows(err) {
		err = c.compareWithPrune(ctx, kept, &compared)
	}
	if err != nil {
		return HeadComparison{}, fmt.Errorf("read commit %d of the chain: %w", kept.Batch, err)
	}
	switch {
	case compared.Found == nil && !compared.Day.IsZero():
		compared.Outcome = HeadPruned
	case string(compared.Found) == string(kept.Digest[:]):
		compared.Outcome = HeadEqual
	default:
		compared.Outcome = HeadDifferent
	}
	return compared, nil
}

// compareWithPrune looks for a commit among the dropped ones. A prune keeps only the digest of its last commit.
func (c Commits) compareWithPrune(ctx context.Context, kept Head, compared *HeadComparison) error {
	var last int64
	var digest []byte
	err := c.view.db.QueryRow(ctx, `
		SELECT day, last_batch, batch_digest FROM kuberewind.record_prunes
		WHERE cluster = $1 AND last_batch >= $2 ORDER BY last_batch LIMIT 1`, c.view.cluster.Number, kept.Batch).Scan(&compared.Day, &last, &digest)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	case last == kept.Batch:
		compared.Found, compared.FromPrune = digest, true
	}
	return nil
}

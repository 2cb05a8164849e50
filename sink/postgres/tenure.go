package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A tenure is the time in which one writer holds a cluster and writes under one epoch (I1).
type tenure struct {
	pool    *pgxpool.Pool
	cluster int32
	epoch   int64
}

// CheckFence returns ErrFenced if another writer has taken over. Otherwise it returns the error of the query, if any.
func (s *Sink) CheckFence(ctx context.Context) error {
	_, err := s.tenure.check(ctx, s.tenure.pool, "")
	return err
}

// hold reads the head, and prevents a takeover until the transaction ends (I1). The error may be ErrFenced.
func (t *tenure) hold(ctx context.Context, tx pgx.Tx) (head, error) {
	return t.check(ctx, tx, "FOR SHARE")
}

// check reads the head. The error may be ErrFenced.
func (t *tenure) check(ctx context.Context, db Queryer, lock string) (head, error) {
	now, err := readHead(ctx, db, t.cluster, lock)
	if err == nil && now.epoch != t.epoch {
		err = t.fencedFrom(now)
	}
	return now, err
}

// fenced returns ErrFenced, with the epoch of the writer that has taken over.
func (t *tenure) fenced(ctx context.Context) error {
	now, err := readHead(ctx, t.pool, t.cluster, "")
	if err != nil {
		return errors.Join(ErrFenced, err)
	}
	return t.fencedFrom(now)
}

func (t *tenure) fencedFrom(now head) error {
	return fmt.Errorf("%w: it writes as epoch %d, this recorder was epoch %d", ErrFenced, now.epoch, t.epoch)
}

func readHead(ctx context.Context, db Queryer, cluster int32, lock string) (h head, err error) {
	var digest []byte
	var observed time.Time
	err = db.QueryRow(ctx, `SELECT epoch, seq, batch, digest, observed_at FROM kuberewind.heads WHERE cluster = $1 `+lock, cluster).
		Scan(&h.epoch, &h.seq, &h.batch, &digest, &observed)
	if err != nil {
		return h, fmt.Errorf("read the head of the record: %w", err)
	}
	if len(digest) != len(h.digest) {
		return h, fmt.Errorf("the head of the record has a digest of %d bytes", len(digest))
	}
	h.digest, h.observed = [32]byte(digest), observed.UnixMicro()
	return h, nil
}

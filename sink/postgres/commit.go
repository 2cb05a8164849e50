package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	errOutOfOrder = errors.New("batches were committed out of order")
	// errLate is the cause with which the sink cancels an attempt that takes too long.
	errLate = errors.New("the database did not answer in time")
)

// Commit writes a batch in one transaction, once, and after the previous batch. If the database is away, full,
// read-only or busy, Commit retries until ctx ends. It drops nothing.
//
// The error is ErrFenced if another writer has taken over, and ErrSetBack if the database has lost commits. A retry
// would not help with any other error; see ClassOf. If ctx ends during the commit of a transaction, the outcome is
// unknown. The next Open reads it from the head.
func (s *Sink) Commit(ctx context.Context, b *Batch) error {
	if b.Empty() {
		return s.commitEmpty(ctx, b)
	}
	if last := s.committed.Load(); b.after.batch != last+1 {
		return fmt.Errorf("%w: batch %d after %d", errOutOfOrder, b.after.batch, last)
	}
	s.committer.partitions.ensureSometimes(ctx)
	begun := time.Now()
	attempts, err := s.committer.commit(ctx, b)
	if err != nil {
		return fmt.Errorf("commit batch %d (seq %d to %d) of cluster %q: %w", b.after.batch, b.firstSeq(), b.after.seq, s.cfg.ClusterName, explain(err))
	}
	s.committed.Store(b.after.batch)
	if s.cfg.Hooks.Committed != nil {
		s.cfg.Hooks.Committed(CommitStats{
			EncodeStats: b.stats, Batch: b.after.batch, LastSeq: b.after.seq, Observed: micros(b.after.observed), Bytes: b.Bytes(),
			Attempts: attempts, Latency: time.Since(begun),
		})
	}
	s.notifyGaps(b)
	s.spare.keep(b)
	return nil
}

// A committer writes batches in transactions. It retries each batch until it is in the database.
type committer struct {
	pool       *pgxpool.Pool
	cluster    int32
	patience   time.Duration
	now        func() time.Time
	retrying   func(Retry) // may be nil
	partitions partitions
}

func (c *committer) commit(ctx context.Context, b *Batch) (attempts int, err error) {
	repeats := 0
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, b, attempt > 1)
		if err == nil {
			return attempt, nil
		}
		if ctx.Err() != nil {
			return attempt, errors.Join(context.Cause(ctx), err)
		}
		class := ClassOf(err)
		if !class.Transient() {
			return attempt, err
		}
		wait := backoff(attempt)
		if class == NoPartition {
			switch made := c.partitions.ensureBatch(ctx, b); {
			case made != nil:
				err = made
			case repeats < maxPartitions:
				repeats++
				wait = 0
			}
		}
		if c.retrying != nil {
			c.retrying(Retry{Class: class, Attempt: attempt, Wait: wait, Err: err})
		}
		if err := sleep(ctx, wait); err != nil {
			return attempt, err
		}
	}
}

// maxPartitions bounds how often the committer retries a batch without a pause, after it has made the batch's
// partitions. Without the bound, it would retry for ever if the partitions do not help.
const maxPartitions = 3

const (
	firstWait = 50 * time.Millisecond
	maxWait   = 5 * time.Second
)

// backoff doubles with each attempt. It varies by a half either way, so that recorders that lost one server do not all
// return at once.
func backoff(attempt int) time.Duration {
	wait := min(firstWait<<min(attempt-1, 10), maxWait)
	return wait/2 + rand.N(wait)
}

func sleep(ctx context.Context, wait time.Duration) error {
	if wait == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// attempt makes one attempt. A retry first checks whether an earlier attempt was committed after all (I7).
func (c *committer) attempt(ctx context.Context, b *Batch, again bool) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.patience, errLate)
	defer cancel()
	err := c.attemptWithin(limited, b, again)
	// If ctx has not ended, the deadline belongs to this attempt, to connecting, or to one answer.
	if err != nil && ctx.Err() == nil && (errors.Is(context.Cause(limited), errLate) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)) {
		// The network has probably cut all connections of the pool. Waiting for each of them would take as long again.
		c.pool.Reset()
		return fmt.Errorf("%w: %s", errLate, err.Error())
	}
	return err
}

func (c *committer) attemptWithin(ctx context.Context, b *Batch, again bool) error {
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	// Release closes a connection that is still in a transaction, and the server rolls back.
	defer conn.Release()
	if b.Empty() {
		return c.moveOffset(ctx, conn.Conn(), b)
	}
	if again {
		done, err := c.isCommitted(ctx, conn.Conn(), b)
		if err != nil || done {
			return err
		}
	}
	return c.write(ctx, conn.Conn(), b)
}

// isCommitted reads the head to find out whether the batch is committed. An open transaction on a lost connection still
// holds the head. FOR UPDATE waits until that transaction ends.
func (c *committer) isCommitted(ctx context.Context, conn *pgx.Conn, b *Batch) (done bool, err error) {
	now, err := readHead(ctx, conn, c.cluster, "FOR UPDATE")
	switch {
	case err != nil:
		return false, err
	case now == b.after:
		return true, nil
	case now.epoch == b.after.epoch && now.batch == b.before.batch && now.digest == b.before.digest:
		return false, nil
	}
	return false, displaced(now, b)
}

// displaced explains why a batch cannot follow the head.
func displaced(now head, b *Batch) error {
	why := ErrFenced
	if now.epoch == b.after.epoch {
		why = ErrSetBack
	}
	return fmt.Errorf("%w: the head is at epoch %d, batch %d, seq %d; this batch of epoch %d must follow batch %d, seq %d",
		why, now.epoch, now.batch, now.seq, b.after.epoch, b.before.batch, b.before.seq)
}

// write runs the transaction of a batch.
func (c *committer) write(ctx context.Context, conn *pgx.Conn, b *Batch) error {
	if err := c.moveHead(ctx, conn, b); err != nil {
		return err
	}
	for _, rows := range []struct {
		table, columns string
		data           *copyBuffer
	}{
		{"lives", lifeColumns, &b.copies.lives},
		{"living", livingColumns, &b.copies.living},
		{"ends", endColumns, &b.copies.ends},
		{"deltas_data", deltaColumns, &b.copies.deltas},
	} {
		if err := copyRows(ctx, conn.PgConn(), rows.table, rows.columns, rows.data); err != nil {
			return err
		}
	}
	return conn.SendBatch(ctx, statementsOf(c.cluster, c.now(), b)).Close()
}

// moveHead begins the transaction with the compare-and-swap (I1). If another writer has moved the head, or the previous
// batch was not committed, the statement finds no row. Then nothing is written.
func (c *committer) moveHead(ctx context.Context, conn *pgx.Conn, b *Batch) error {
	batch := new(pgx.Batch)
	batch.Queue("BEGIN")
	moved := false
	batch.Queue(`
		UPDATE kuberewind.heads SET seq = $5, batch = batch + 1, digest = $6, observed_at = $7, spool = $8, spool_next = $9, verified_at = greatest(verified_at, $10)
		WHERE cluster = $1 AND epoch = $2 AND seq = $3 AND batch = $4`,
		c.cluster, b.after.epoch, b.before.seq, b.before.batch, b.after.seq, b.after.digest[:], micros(b.after.observed), b.notes.offset.Spool, b.notes.offset.next(), b.notes.verified,
	).Exec(func(tag pgconn.CommandTag) error {
		moved = tag.RowsAffected() == 1
		return nil
	})
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if moved {
		return nil
	}
	return c.notFound(ctx, conn, b)
}

// notFound explains why the compare-and-swap found no row.
func (c *committer) notFound(ctx context.Context, conn *pgx.Conn, b *Batch) error {
	now, err := readHead(ctx, conn, c.cluster, "")
	if err != nil {
		return err
	}
	return displaced(now, b)
}

// copyRows writes rows by COPY. PostgreSQL needs half as much log for it as for an INSERT.
func copyRows(ctx context.Context, conn *pgconn.PgConn, table, columns string, data *copyBuffer) error {
	if data.rows == 0 {
		return nil
	}
	tag, err := conn.CopyFrom(ctx, bytes.NewReader(data.b), "COPY kuberewind."+table+" ("+columns+") FROM STDIN (FORMAT binary)")
	if err != nil {
		return fmt.Errorf("copy into %s: %w", table, err)
	}
	if tag.RowsAffected() != int64(data.rows) {
		return fmt.Errorf("copy into %s: sent %d rows, but the server took %d", table, data.rows, tag.RowsAffected())
	}
	return nil
}

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
	// errLate is the cause with which one attempt is given up.
	errLate = errors.New("the database did not answer in time")
)

// Commit writes a batch: whole, once, and after the batch before it. While the database is away, full, read-only or busy, it
// tries again until ctx ends. Nothing is dropped. The error is ErrFenced if another writer has taken over, and ErrSetBack if
// the database has lost what was committed. Any other error would not change with another try; ClassOf tells. If ctx ends
// while a transaction is being committed, the outcome is unknown, and the next Open finds out.
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
	s.tellGaps(b)
	s.spare.keep(b)
	return nil
}

// A committer writes batches in transactions, and tries again until each is in the database.
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

// maxPartitions bounds how often a batch is tried again without a pause because its partitions exist now. Without a bound, a
// partition that does not help would be tried for ever.
const maxPartitions = 3

const (
	firstWait = 50 * time.Millisecond
	maxWait   = 5 * time.Second
)

// backoff doubles with each attempt, and varies by a half either way. So recorders that lost one server do not come back
// together.
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

// attempt tries once. Each try after the first begins with asking whether one before it was committed after all (I7).
func (c *committer) attempt(ctx context.Context, b *Batch, again bool) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.patience, errLate)
	defer cancel()
	err := c.attemptWithin(limited, b, again)
	// A deadline that is not ctx's is that of this attempt, of a connection's making, or of an answer.
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
	// A connection that is still in a transaction is closed by this, which rolls back.
	defer conn.Release()
	if b.Empty() {
		return c.moveOffset(ctx, conn.Conn(), b)
	}
	if again {
		done, err := c.settled(ctx, conn.Conn(), b)
		if err != nil || done {
			return err
		}
	}
	return c.write(ctx, conn.Conn(), b)
}

// settled reads the head to learn whether the batch is committed. A transaction that is still open on a lost connection holds
// the head. FOR UPDATE waits until it has ended one way or the other.
func (c *committer) settled(ctx context.Context, conn *pgx.Conn, b *Batch) (done bool, err error) {
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
	return fmt.Errorf("%w: the head is at epoch %d, batch %d, seq %d, and this one, of epoch %d, was to follow batch %d, seq %d",
		why, now.epoch, now.batch, now.seq, b.after.epoch, b.before.batch, b.before.seq)
}

// write is the transaction.
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

// moveHead begins the transaction with the compare-and-swap. I1: the position cannot pass a delta of another writer, or of a
// batch that was not committed. In both cases no row is found, and nothing is written.
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

// copyRows writes rows: of the log, PostgreSQL needs half as much for them as for those of an INSERT.
func copyRows(ctx context.Context, conn *pgconn.PgConn, table, columns string, data *copyBuffer) error {
	if data.rows == 0 {
		return nil
	}
	tag, err := conn.CopyFrom(ctx, bytes.NewReader(data.b), "COPY kuberewind."+table+" ("+columns+") FROM STDIN (FORMAT binary)")
	if err != nil {
		return fmt.Errorf("copy into %s: %w", table, err)
	}
	if tag.RowsAffected() != int64(data.rows) {
		return fmt.Errorf("copy into %s: %d rows were sent, and the server took %d", table, data.rows, tag.RowsAffected())
	}
	return nil
}

package activity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
)

// BlockDeltas is the number of deltas in a block. If fewer deltas remain uncounted, a strip reads them one by one.
const BlockDeltas = 4096

// Session is the application name of a Counter's sessions in pg_stat_activity.
const Session = "kuberewind counts"

// Options are the options of a Counter. Zero values mean the defaults.
type Options struct {
	// CheckEvery is how often Run checks whether a block can be counted; 0 means ten seconds.
	CheckEvery time.Duration
	// Block is the number of deltas in a block; 0 means BlockDeltas.
	Block int64
	// Busy is the share of the time in which the Counter works; 0 means half. At 1 it does not rest.
	Busy float64
	// Log receives the errors that Run cannot return; nil discards them.
	Log *slog.Logger
}

// A Counter counts the deltas of a cluster before a strip needs the counts. It needs two connections with the rights of
// kuberewind_counter.
type Counter struct {
	pool         *pgxpool.Pool
	record       *history.Record
	blockCounter *blockCounter
	options      Options
	logged       string // last error in the log
}

// NewCounter returns a Counter that uses the caller's pool. The caller closes the pool.
func NewCounter(pool *pgxpool.Pool, cluster history.Cluster, o Options) *Counter {
	if o.CheckEvery == 0 {
		o.CheckEvery = 10 * time.Second
	}
	if o.Block <= 0 {
		o.Block = BlockDeltas
	}
	if o.Busy <= 0 || o.Busy > 1 {
		o.Busy = 0.5
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	record := history.Of(pool, cluster)
	return &Counter{pool: pool, record: record, blockCounter: newBlockCounter(record), options: o}
}

// Run counts everything that can be counted, until ctx ends. It then returns nil. Run logs a failure and retries later.
// Without counts, answers are the same, but slower.
func (c *Counter) Run(ctx context.Context) error {
	ticker := time.NewTicker(c.options.CheckEvery)
	defer ticker.Stop()
	for {
		c.logOnce(ctx, c.CountDue(ctx))
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// logOnce logs an error, but not again while it stays the same.
func (c *Counter) logOnce(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil, errors.Is(err, errNewStream):
	case err == nil:
		c.logged = ""
	case err.Error() != c.logged:
		c.logged = err.Error()
		c.options.Log.WarnContext(ctx, "counting ahead for the timeline failed; wide windows are slower until it succeeds", "cluster", c.record.Cluster().Name, "error", err)
	}
}

// Rebuild deletes all counts of the cluster and counts again.
func (c *Counter) Rebuild(ctx context.Context) error {
	if _, err := c.pool.Exec(ctx, `DELETE FROM kuberewind.activity WHERE cluster = $1`, c.record.Cluster().Number); err != nil {
		return fmt.Errorf("delete the counts: %w", err)
	}
	return c.CountDue(ctx)
}

// CountDue counts everything that can be counted now, block by block from the oldest on. It rests after each block. Each
// block is one transaction, so a stopped Counter loses nothing. CountDue skips missing deltas, and reports the first such
// block at the end.
func (c *Counter) CountDue(ctx context.Context) error {
	var damaged error
	for counted := int64(0); ; {
		began := time.Now()
		s, err := c.due(ctx, counted)
		if err != nil || s == nil {
			return cmp.Or(err, damaged)
		}
		counted = s.last
		var missing *history.MissingDayError
		switch err := c.countOne(ctx, *s); {
		case err == nil:
		case errors.Is(err, ErrChanged):
			counted = s.first - 1 // A day was dropped, or a value was erased, during the count.
		case errors.As(err, &missing):
			counted = missing.LastSeq
		case errors.Is(err, errHoles):
			damaged = cmp.Or(damaged, fmt.Errorf("count the deltas from %d to %d: %w", s.first, s.last, err))
		default:
			return fmt.Errorf("count the deltas from %d to %d: %w", s.first, s.last, err)
		}
		if err := c.rest(ctx, time.Since(began)); err != nil {
			return err
		}
	}
}

func (c *Counter) rest(ctx context.Context, worked time.Duration) error {
	if c.options.Busy == 1 {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Duration(float64(worked) * (1 - c.options.Busy) / c.options.Busy))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// due returns the next uncounted span after a seq, or nil. The last day may still grow: its last deltas wait until they
// fill a block.
func (c *Counter) due(ctx context.Context, counted int64) (*span, error) {
	days, err := c.record.Days().List(ctx, counted+1, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	blocks, err := blocksOf(ctx, c.record, days, counted+1, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	for i := range days {
		d := &days[i]
		from, to := max(d.FirstSeq, counted+1), d.LastSeq
		for len(blocks) > 0 && blocks[0].First <= d.LastSeq {
			b := blocks[0]
			if from < b.First {
				return c.cut(d.Day, from, b.First-1), nil
			}
			from, blocks = max(from, b.Last+1), blocks[1:]
		}
		if over := i < len(days)-1; from <= to && (over || to-from+1 >= c.options.Block) {
			return c.cut(d.Day, from, to), nil
		}
	}
	return nil, nil
}

func (c *Counter) cut(day time.Time, from, to int64) *span {
	return &span{day: day, first: from, last: min(to, from+c.options.Block-1)}
}

// countOne counts a span, and replaces earlier blocks of it. The error is ErrChanged if the record's past changed
// meanwhile.
func (c *Counter) countOne(ctx context.Context, s span) error {
	revision, err := c.record.Completeness().Revision(ctx)
	if err != nil {
		return err
	}
	counted, err := c.blockCounter.count(ctx, s)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		// An erasure holds this lock until it commits, and deletes the counts made before it. So either this transaction
		// sees the erasure, or the erasure sees this block. A prune may hold the row of a day while it waits for this lock.
		// PostgreSQL looks for deadlocks after one second, so the counter gives up before that.
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '500ms'; LOCK TABLE kuberewind.activity IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		switch now, err := c.record.Completeness().Revision(ctx); {
		case err != nil:
			return err
		case now != revision:
			return ErrChanged
		}
		return c.write(ctx, tx, s, counted)
	})
}

func (c *Counter) write(ctx context.Context, tx pgx.Tx, s span, counted *blockCounts) error {
	cluster := c.record.Cluster().Number
	_, err := tx.Exec(ctx, `DELETE FROM kuberewind.activity WHERE cluster = $1 AND day = $2 AND last_seq >= $3 AND first_seq <= $4`, cluster, s.day, s.first, s.last)
	if err != nil {
		return err
	}
	for width, all := range counted.rows() {
		_, err := tx.Exec(ctx, `
			INSERT INTO kuberewind.activity
				(cluster, day, first_seq, last_seq, width, classifier, times, streams, namespaces, managers, classes, counts, first_seqs, last_seqs, deltas)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
			cluster, s.day, s.first, s.last, string(width), class.Version, all.times, all.streams, all.namespaces, all.managers, all.classes, all.counts, all.firstSeqs, all.lastSeqs,
			all.deltas)
		if err != nil {
			return err
		}
	}
	return nil
}

// rows yields the table rows of a block.
func (r *blockCounts) rows() iter.Seq2[Width, *columns] {
	return func(yield func(Width, *columns) bool) {
		for _, w := range widths {
			if !yield(w.width, r.minutes.by(w.long, w.together).columns()) {
				return
			}
		}
		yield(Delta, r.sequence.columns())
	}
}

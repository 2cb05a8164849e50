package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A cursor reads the rows of a query some at a time, so that several can be read side by side in one snapshot.
type cursor[T any] struct {
	tx   pgx.Tx
	name string
	scan func(pgx.CollectableRow) (T, error)
	rows []T // fetched and not taken
	done bool
}

// fetchRows is how many rows are fetched at once.
const fetchRows = "2000"

// A cursorOpener declares cursors until one fails.
type cursorOpener struct {
	ctx  context.Context
	tx   pgx.Tx
	args []any
	err  error
}

func declare[T any](o *cursorOpener, name, query string, scan func(pgx.CollectableRow) (T, error)) *cursor[T] {
	if o.err == nil {
		_, o.err = o.tx.Exec(o.ctx, "DECLARE "+name+" NO SCROLL CURSOR FOR "+fmt.Sprintf(query, o.args...))
	}
	return &cursor[T]{tx: o.tx, name: name, scan: scan}
}

func (c *cursor[T]) fill(ctx context.Context) error {
	if len(c.rows) > 0 || c.done {
		return nil
	}
	rows, err := c.tx.Query(ctx, "FETCH "+fetchRows+" FROM "+c.name)
	if err != nil {
		return err
	}
	c.rows, err = pgx.AppendRows(c.rows[:0], rows, c.scan)
	c.done = len(c.rows) == 0
	return err
}

// take gives the next row, or false at the end.
func (c *cursor[T]) take(ctx context.Context) (row T, ok bool, err error) {
	if err := c.fill(ctx); err != nil || c.done {
		return row, false, err
	}
	row = c.rows[0]
	c.rows = c.rows[1:]
	return row, true, nil
}

// through gives each row whose key is from first to last, and passes over those before.
func (c *cursor[T]) through(ctx context.Context, key func(*T) int64, first, last int64, give func(*T)) error {
	for {
		if err := c.fill(ctx); err != nil || c.done {
			return err
		}
		k := key(&c.rows[0])
		if k > last {
			return nil
		}
		if k >= first {
			give(&c.rows[0])
		}
		c.rows = c.rows[1:]
	}
}

// The parameters are the cluster, its oldest batch, and the first seq of that. They are integers, and are written into the text.
const (
	selectBatches = `SELECT batch, epoch, first_seq, last_seq, observed_at, digest FROM kuberewind.batches WHERE cluster = %[1]d AND batch >= %[2]d ORDER BY batch`
	selectDeltas  = `SELECT seq, object_id, stream, observed_at, occurred_at, type, source, coalesce(manager_evidence, 0), rv, version,
			coalesce(manager, ''), coalesce(manager_hint, ''), coalesce(subresource, ''), digest
		FROM kuberewind.deltas_data WHERE cluster = %[1]d AND seq >= %[3]d ORDER BY seq`
	selectLives   = `SELECT object_id, stream, namespace, name, uid FROM kuberewind.lives WHERE cluster = %[1]d AND object_id >= %[3]d ORDER BY object_id`
	selectEndings = `SELECT object_id, seq FROM kuberewind.ends WHERE cluster = %[1]d AND seq >= %[3]d ORDER BY seq`
	selectGaps    = `SELECT gap, stream, cause, detail, from_rv, from_at, opened_batch, to_rv, to_at, coalesce(closed_batch, 0), coalesce(outcome, ''), appeared, changed, vanished, unchanged
		FROM kuberewind.gaps_data WHERE cluster = %[1]d`
	selectOpened = selectGaps + ` AND opened_batch >= %[2]d ORDER BY opened_batch, gap`
	selectClosed = selectGaps + ` AND closed_batch >= %[2]d ORDER BY closed_batch, gap`
	// Erasures of batches that were dropped changed nothing that is left.
	selectErasures = `SELECT erasure, batch, erased_at, erased_by, reason, scope, fingerprint, deltas, objects, documents
		FROM kuberewind.erasures_data WHERE cluster = %[1]d AND batch >= %[2]d ORDER BY batch, erasure`
	selectErased        = `SELECT seq, digest_before, digest_after, batch FROM kuberewind.erased_deltas WHERE cluster = %[1]d AND batch >= %[2]d`
	selectErasedBySeq   = selectErased + ` AND seq >= %[3]d ORDER BY seq, batch`
	selectErasedByBatch = selectErased + ` ORDER BY batch, seq`
)

func scanBatch(r pgx.CollectableRow) (b chainedBatch, err error) {
	var observed time.Time
	err = r.Scan(&b.number, &b.epoch, &b.firstSeq, &b.lastSeq, &observed, &b.digest)
	b.observed = observed.UnixMicro()
	return b, err
}

func scanDelta(r pgx.CollectableRow) (d row, err error) {
	var observed, occurred time.Time
	var digest []byte
	err = r.Scan(&d.seq, &d.objectID, &d.stream, &observed, &occurred, &d.kind, &d.source, &d.evidence, &d.rv, &d.version,
		&d.manager, &d.hint, &d.subresource, &digest)
	d.observed, d.occurred = observed.UnixMicro(), occurred.UnixMicro()
	copy(d.digest[:], digest)
	return d, err
}

func scanLife(r pgx.CollectableRow) (l life, err error) {
	return l, r.Scan(&l.objectID, &l.stream, &l.namespace, &l.name, &l.uid)
}

func scanEnding(r pgx.CollectableRow) (e ending, err error) {
	return e, r.Scan(&e.objectID, &e.seq)
}

func scanGap(r pgx.CollectableRow) (g gap, err error) {
	var fromAt, toAt *time.Time
	var counts [4]*int64
	err = r.Scan(&g.number, &g.stream, &g.cause, &g.detail, &g.fromRV, &fromAt, &g.opened, &g.toRV, &toAt, &g.closed, &g.outcome,
		&counts[0], &counts[1], &counts[2], &counts[3])
	g.fromAt, g.toAt = microsOf(fromAt), microsOf(toAt)
	if counts[0] != nil && counts[1] != nil && counts[2] != nil && counts[3] != nil {
		g.counts = &[4]int64{*counts[0], *counts[1], *counts[2], *counts[3]}
	}
	return g, err
}

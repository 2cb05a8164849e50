package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/chain"
)

// ErrUnknownCluster says that the record holds no such cluster.
var ErrUnknownCluster = errors.New("the record holds no such cluster")

// TxBeginner is a connection or a pool.
type TxBeginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Chain computes the digest of each batch of a cluster again, from the tables alone, and compares it with the digest on
// record. A delta or batch that was changed, removed or added later breaks the chain. Chain reads in one snapshot while a
// recorder may write, and keeps no more than some thousand rows in memory. The error is an error of the database, or
// ErrUnknownCluster. The report holds what is wrong with the record.
func Chain(ctx context.Context, db TxBeginner, cluster string) (ChainReport, error) {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return ChainReport{}, fmt.Errorf("verify the chain of cluster %q: %w", cluster, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing was written
	v, err := newChainWalk(ctx, tx, cluster)
	if err == nil {
		err = v.run(ctx)
	}
	if err != nil {
		return ChainReport{}, fmt.Errorf("verify the chain of cluster %q: %w", cluster, err)
	}
	return v.report, nil
}

func newChainWalk(ctx context.Context, tx pgx.Tx, name string) (*chainWalk, error) {
	v := &chainWalk{digester: chain.New()}
	var uid string
	err := tx.QueryRow(ctx, `SELECT cluster, uid FROM kuberewind.clusters WHERE name = $1`, name).Scan(&v.cluster, &uid)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrUnknownCluster
	}
	if err != nil {
		return nil, err
	}
	if err := tx.QueryRow(ctx, `SELECT batch, digest FROM kuberewind.heads WHERE cluster = $1`, v.cluster).Scan(&v.head.batch, &v.head.digest); err != nil {
		return nil, fmt.Errorf("read the head of the record: %w", err)
	}
	v.before = chain.Genesis(uid)
	return v, v.open(ctx, tx)
}

// open declares the cursors, from the oldest batch on.
func (v *chainWalk) open(ctx context.Context, tx pgx.Tx) error {
	var firstBatch, firstSeq int64
	err := tx.QueryRow(ctx, `SELECT batch, first_seq FROM kuberewind.batches WHERE cluster = $1 ORDER BY batch LIMIT 1`, v.cluster).Scan(&firstBatch, &firstSeq)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	v.report.FirstBatch, v.report.Anchored = firstBatch, firstBatch == 1 || firstBatch == 0 && v.head.batch == 0
	if err := v.link(ctx, tx); err != nil {
		return err
	}
	opener := cursorOpener{ctx: ctx, tx: tx, args: []any{v.cluster, firstBatch, firstSeq}}
	v.batches = declare(&opener, "kuberewind_batches", selectBatches, scanBatch)
	v.deltas = declare(&opener, "kuberewind_deltas", selectDeltas, scanDelta)
	v.lives = declare(&opener, "kuberewind_lives", selectLives, scanLife)
	v.ends = declare(&opener, "kuberewind_ends", selectEnds, scanEnd)
	v.opened = declare(&opener, "kuberewind_opened", selectOpened, scanGap)
	v.closed = declare(&opener, "kuberewind_closed", selectClosed, scanGap)
	v.erasuresMade = declare(&opener, "kuberewind_erasures", selectErasures, scanErasure)
	v.erasedBySeq = declare(&opener, "kuberewind_erased_by_seq", selectErasedBySeq, scanErased)
	v.erasedByBatch = declare(&opener, "kuberewind_erased_by_batch", selectErasedByBatch, scanErased)
	return opener.err
}

// link finds the digest to which the oldest batch is chained, if earlier batches were dropped.
func (v *chainWalk) link(ctx context.Context, tx pgx.Tx) error {
	if v.report.Anchored || v.report.FirstBatch == 0 {
		return nil
	}
	var digest []byte
	err := tx.QueryRow(ctx, `
		SELECT batch_digest, (SELECT coalesce(max(last_seq), 0) FROM kuberewind.record_prunes WHERE cluster = $1)
		FROM kuberewind.record_prunes WHERE cluster = $1 AND last_batch = $2`, v.cluster, v.report.FirstBatch-1).Scan(&digest, &v.dropped)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if v.linked = copy(v.before[:], digest) == len(v.before); !v.linked {
		v.broken(v.report.FirstBatch, fmt.Sprintf("it is the oldest on record, and no prune says that commits 1 to %d were dropped", v.report.FirstBatch-1))
	}
	return nil
}

func (v *chainWalk) run(ctx context.Context) error {
	expected := v.report.FirstBatch
	for len(v.report.Breaks) < maxBreaks {
		b, ok, err := v.batches.take(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return v.finish(ctx)
		}
		if b.Number != expected {
			v.broken(expected, fmt.Sprintf("commits %d to %d are missing", expected, b.Number-1))
		}
		expected = b.Number + 1
		if err := v.batch(ctx, &b); err != nil {
			return err
		}
	}
	return nil
}

// finish compares the end of the chain with the head.
func (v *chainWalk) finish(ctx context.Context) error {
	extra, ok, err := v.deltas.take(ctx)
	if err != nil {
		return err
	}
	if ok {
		v.broken(v.report.LastBatch+1, fmt.Sprintf("seq %d is on record, but no commit wrote it", extra.Seq))
	}
	if err := v.unmade(ctx); err != nil {
		return err
	}
	if v.report.LastBatch != v.head.batch {
		v.broken(v.head.batch, fmt.Sprintf("the head is at commit %d, and the last commit on record is %d", v.head.batch, v.report.LastBatch))
	} else if !bytes.Equal(v.before[:], v.head.digest) {
		v.broken(v.head.batch, "the head has another digest than the last commit")
	}
	return nil
}

func (v *chainWalk) batch(ctx context.Context, b *chainedBatch) error {
	v.report.LastBatch = b.Number
	v.digester.Begin(v.before)
	rows, err := v.content(ctx, b)
	if err != nil {
		return err
	}
	digest := v.digester.Sum(b.Batch)
	computable := v.computable(b)
	switch want := b.LastSeq - b.FirstSeq + 1; {
	case !computable:
	case rows != want:
		v.broken(b.Number, fmt.Sprintf("it wrote %d deltas (seq %d to %d), but %d are on record", want, b.FirstSeq, b.LastSeq, rows))
	case string(digest[:]) != string(b.digest):
		v.broken(b.Number, "its digest differs from that of its rows on record")
	}
	if computable {
		v.report.Batches++
	}
	v.report.Deltas += rows
	copy(v.before[:], b.digest)
	return nil
}

// computable reports whether the record holds everything that the digest of a batch covers. For the oldest batch, parts may
// have been dropped with a day, or the previous digest may be unknown. Then Chain takes its digest from the record.
func (v *chainWalk) computable(b *chainedBatch) bool {
	return b.Number != v.report.FirstBatch || v.report.Anchored || v.linked && b.FirstSeq > v.dropped
}

// content hashes what the batch wrote, and counts its deltas. It skips rows that belong to no batch; finish reports their
// seq.
func (v *chainWalk) content(ctx context.Context, b *chainedBatch) (rows int64, err error) {
	var undone error
	err = v.deltas.through(ctx, func(d *chain.Delta) int64 { return d.Seq }, b.FirstSeq, b.LastSeq, func(d *chain.Delta) {
		rows++
		if undone == nil {
			undone = v.undo(ctx, d)
		}
		v.digester.Delta(d)
	})
	if err = errors.Join(err, undone); err == nil {
		err = v.lives.through(ctx, func(l *chain.Life) int64 { return l.ObjectID }, b.FirstSeq, b.LastSeq, v.digester.Life)
	}
	if err == nil {
		err = v.ends.through(ctx, func(e *chain.End) int64 { return e.Seq }, b.FirstSeq, b.LastSeq, v.digester.End)
	}
	if err == nil {
		err = v.opened.through(ctx, func(g *gapRow) int64 { return g.opened }, b.Number, b.Number, func(g *gapRow) { v.digester.Opened(&g.Gap) })
	}
	if err == nil {
		err = v.closed.through(ctx, func(g *gapRow) int64 { return g.closed }, b.Number, b.Number, func(g *gapRow) { v.digester.Closed(&g.Gap) })
	}
	if err == nil {
		err = v.erasures(ctx, b)
	}
	return rows, err
}

package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A ChainReport is what VerifyChain found.
type ChainReport struct {
	FirstBatch int64 // oldest on record, 0 if there is none
	LastBatch  int64
	Batches    int64 // whose digests were computed again
	Deltas     int64
	Erasures   int64 // that are in the chain
	Erased     int64 // deltas that these changed, each counted once for each
	// Anchored says that the record begins with its first batch. Otherwise older partitions were dropped, and the batch before
	// the oldest one is on record as dropped, with its digest. If that entry is missing, that is a break. If deltas of the oldest batch
	// went with the day before it, its digest is taken from the record.
	Anchored bool
	Breaks   []ChainBreak // at most maxBreaks
}

// A ChainBreak is a batch that does not say what was written.
type ChainBreak struct {
	Batch  int64
	Reason string
}

// maxBreaks bounds a report: a record with more is not worth reading on.
const maxBreaks = 100

// ErrUnknownCluster says that the record holds no such cluster.
var ErrUnknownCluster = errors.New("the record holds no such cluster")

// TxBeginner is what VerifyChain needs of a connection or pool.
type TxBeginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// VerifyChain computes the digest of each batch of a cluster again, from the tables alone, and compares it with the one on
// record. A delta or batch that was changed, removed or added since breaks the chain. VerifyChain reads in one snapshot while
// a recorder may write, and keeps no more than some thousand rows in memory. An error is one of the database's, or
// ErrUnknownCluster. What is wrong with the record is in the report.
func VerifyChain(ctx context.Context, db TxBeginner, cluster string) (ChainReport, error) {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return ChainReport{}, fmt.Errorf("verify the chain of cluster %q: %w", cluster, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing was written
	v, err := newVerifier(ctx, tx, cluster)
	if err == nil {
		err = v.run(ctx)
	}
	if err != nil {
		return ChainReport{}, fmt.Errorf("verify the chain of cluster %q: %w", cluster, err)
	}
	return v.report, nil
}

type chainedBatch struct {
	number, epoch     int64
	firstSeq, lastSeq int64
	observed          int64
	digest            []byte
}

type verifier struct {
	cluster int32
	head    head
	before  [32]byte // digest of the batch before
	chain   *chain
	linked  bool  // the digest of the batch before the oldest one is known
	dropped int64 // last seq that went with it
	report  ChainReport

	batches *cursor[chainedBatch]
	deltas  *cursor[row]
	lives   *cursor[life]
	endings *cursor[ending]
	opened  *cursor[gap]
	closed  *cursor[gap]

	erasuresMade               *cursor[erasureRow]
	erasedBySeq, erasedByBatch *cursor[erasedDelta]
}

func newVerifier(ctx context.Context, tx pgx.Tx, name string) (*verifier, error) {
	v := &verifier{chain: newChain()}
	var uid string
	err := tx.QueryRow(ctx, `SELECT cluster, uid FROM kuberewind.clusters WHERE name = $1`, name).Scan(&v.cluster, &uid)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrUnknownCluster
	}
	if err == nil {
		v.head, err = readHead(ctx, tx, v.cluster, "")
	}
	if err != nil {
		return nil, err
	}
	v.before = genesis(uid)
	return v, v.open(ctx, tx)
}

// open declares the cursors, from the oldest batch on.
func (v *verifier) open(ctx context.Context, tx pgx.Tx) error {
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
	v.endings = declare(&opener, "kuberewind_endings", selectEndings, scanEnding)
	v.opened = declare(&opener, "kuberewind_opened", selectOpened, scanGap)
	v.closed = declare(&opener, "kuberewind_closed", selectClosed, scanGap)
	v.erasuresMade = declare(&opener, "kuberewind_erasures", selectErasures, scanErasure)
	v.erasedBySeq = declare(&opener, "kuberewind_erased_by_seq", selectErasedBySeq, scanErased)
	v.erasedByBatch = declare(&opener, "kuberewind_erased_by_batch", selectErasedByBatch, scanErased)
	return opener.err
}

// link finds what the oldest batch is chained to, where those before it were dropped.
func (v *verifier) link(ctx context.Context, tx pgx.Tx) error {
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
		v.broken(v.report.FirstBatch, fmt.Sprintf("it is the oldest on record, and no prune says that batches 1 to %d were dropped", v.report.FirstBatch-1))
	}
	return nil
}

func (v *verifier) run(ctx context.Context) error {
	expected := v.report.FirstBatch
	for len(v.report.Breaks) < maxBreaks {
		b, ok, err := v.batches.take(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return v.finish(ctx)
		}
		if b.number != expected {
			v.broken(expected, fmt.Sprintf("batches %d to %d are missing", expected, b.number-1))
		}
		expected = b.number + 1
		if err := v.batch(ctx, &b); err != nil {
			return err
		}
	}
	return nil
}

// finish compares the end of the chain with the head.
func (v *verifier) finish(ctx context.Context) error {
	extra, ok, err := v.deltas.take(ctx)
	if err != nil {
		return err
	}
	if ok {
		v.broken(v.report.LastBatch+1, fmt.Sprintf("seq %d is on record, and no batch wrote it", extra.seq))
	}
	if err := v.unmade(ctx); err != nil {
		return err
	}
	if v.report.LastBatch != v.head.batch {
		v.broken(v.head.batch, fmt.Sprintf("the head is at batch %d, and the last batch on record is %d", v.head.batch, v.report.LastBatch))
	} else if v.before != v.head.digest {
		v.broken(v.head.batch, "the head has another digest than the last batch")
	}
	return nil
}

func (v *verifier) batch(ctx context.Context, b *chainedBatch) error {
	v.report.LastBatch = b.number
	v.chain.begin(v.before)
	rows, err := v.content(ctx, b)
	if err != nil {
		return err
	}
	digest := v.chain.end(v.cluster, b.epoch, b.number, b.firstSeq, b.lastSeq, b.observed)
	believed := b.number == v.report.FirstBatch && !v.report.Anchored && (!v.linked || b.firstSeq <= v.dropped)
	switch want := b.lastSeq - b.firstSeq + 1; {
	case believed:
	case rows != want:
		v.broken(b.number, fmt.Sprintf("it wrote %d deltas (seq %d to %d), and %d are on record", want, b.firstSeq, b.lastSeq, rows))
	case string(digest[:]) != string(b.digest):
		v.broken(b.number, "its digest is not that of what is on record")
	}
	if !believed {
		v.report.Batches++
	}
	v.report.Deltas += rows
	copy(v.before[:], b.digest)
	return nil
}

func (v *verifier) broken(batch int64, reason string) {
	v.report.Breaks = append(v.report.Breaks, ChainBreak{Batch: batch, Reason: reason})
}

// content hashes what the batch wrote, and counts its deltas. What belongs to no batch is left out, and is told by its seq.
func (v *verifier) content(ctx context.Context, b *chainedBatch) (rows int64, err error) {
	var undone error
	err = v.deltas.through(ctx, func(r *row) int64 { return r.seq }, b.firstSeq, b.lastSeq, func(r *row) {
		rows++
		if undone == nil {
			undone = v.undo(ctx, r)
		}
		v.chain.delta(r)
	})
	if err = errors.Join(err, undone); err == nil {
		err = v.lives.through(ctx, func(l *life) int64 { return l.objectID }, b.firstSeq, b.lastSeq, v.chain.life)
	}
	if err == nil {
		err = v.endings.through(ctx, func(e *ending) int64 { return e.seq }, b.firstSeq, b.lastSeq, func(e *ending) { v.chain.ending(*e) })
	}
	if err == nil {
		err = v.opened.through(ctx, func(g *gap) int64 { return g.opened }, b.number, b.number, v.chain.opening)
	}
	if err == nil {
		err = v.closed.through(ctx, func(g *gap) int64 { return g.closed }, b.number, b.number, v.chain.closing)
	}
	if err == nil {
		err = v.erasures(ctx, b)
	}
	return rows, err
}

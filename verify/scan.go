package verify

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/chain"
)

// A chainedBatch is a row of batches.
type chainedBatch struct {
	chain.Batch
	digest []byte // on record
}

// A gapRow is a row of gaps_data.
type gapRow struct {
	chain.Gap
	opened, closed int64 // batches; closed is 0 while the gap is open
}

// An erasureRow is a row of erasures_data.
type erasureRow struct {
	chain.Erasure
	batch int64
}

// An erasedRow is a row of erased_deltas.
type erasedRow struct {
	chain.ErasedDelta
	batch int64
}

// The parameters are the cluster, its oldest batch, and the first seq of that batch. They are integers, and are written
// into the text.
const (
	selectBatches = `SELECT cluster, batch, epoch, first_seq, last_seq, observed_at, digest FROM kuberewind.batches WHERE cluster = %[1]d AND batch >= %[2]d ORDER BY batch`
	selectDeltas  = `SELECT seq, object_id, stream, observed_at, occurred_at, type, source, coalesce(manager_evidence, 0), rv, version,
			coalesce(manager, ''), coalesce(manager_hint, ''), coalesce(subresource, ''), digest
		FROM kuberewind.deltas_data WHERE cluster = %[1]d AND seq >= %[3]d ORDER BY seq`
	selectLives = `SELECT object_id, stream, namespace, name, uid FROM kuberewind.lives WHERE cluster = %[1]d AND object_id >= %[3]d ORDER BY object_id`
	selectEnds  = `SELECT object_id, seq FROM kuberewind.ends WHERE cluster = %[1]d AND seq >= %[3]d ORDER BY seq`
	selectGaps  = `SELECT gap, stream, cause, detail, from_rv, from_at, opened_batch, to_rv, to_at, coalesce(closed_batch, 0), coalesce(outcome, ''), appeared, changed, vanished, unchanged
		FROM kuberewind.gaps_data WHERE cluster = %[1]d`
	selectOpened = selectGaps + ` AND opened_batch >= %[2]d ORDER BY opened_batch, gap`
	selectClosed = selectGaps + ` AND closed_batch >= %[2]d ORDER BY closed_batch, gap`
	// Erasures in dropped batches changed no remaining delta.
	selectErasures = `SELECT erasure, batch, erased_at, erased_by, reason, scope, fingerprint, deltas, objects, documents
		FROM kuberewind.erasures_data WHERE cluster = %[1]d AND batch >= %[2]d ORDER BY batch, erasure`
	selectErased        = `SELECT seq, digest_before, digest_after, batch FROM kuberewind.erased_deltas WHERE cluster = %[1]d AND batch >= %[2]d`
	selectErasedBySeq   = selectErased + ` AND seq >= %[3]d ORDER BY seq, batch`
	selectErasedByBatch = selectErased + ` ORDER BY batch, seq`
)

func scanBatch(r pgx.CollectableRow) (b chainedBatch, err error) {
	var observed time.Time
	err = r.Scan(&b.Cluster, &b.Number, &b.Epoch, &b.FirstSeq, &b.LastSeq, &observed, &b.digest)
	b.Observed = observed.UnixMicro()
	return b, err
}

func scanDelta(r pgx.CollectableRow) (d chain.Delta, err error) {
	var observed, occurred time.Time
	var digest []byte
	err = r.Scan(&d.Seq, &d.ObjectID, &d.Stream, &observed, &occurred, &d.Kind, &d.Source, &d.Evidence, &d.RV, &d.Version,
		&d.Manager, &d.Hint, &d.Subresource, &digest)
	d.Observed, d.Occurred = observed.UnixMicro(), occurred.UnixMicro()
	copy(d.Digest[:], digest)
	return d, err
}

func scanLife(r pgx.CollectableRow) (l chain.Life, err error) {
	return l, r.Scan(&l.ObjectID, &l.Stream, &l.Namespace, &l.Name, &l.UID)
}

func scanEnd(r pgx.CollectableRow) (e chain.End, err error) {
	return e, r.Scan(&e.ObjectID, &e.Seq)
}

func scanGap(r pgx.CollectableRow) (g gapRow, err error) {
	var fromAt, toAt *time.Time
	var counts [4]*int64
	err = r.Scan(&g.Number, &g.Stream, &g.Cause, &g.Detail, &g.FromRV, &fromAt, &g.opened, &g.ToRV, &toAt, &g.closed, &g.Outcome,
		&counts[0], &counts[1], &counts[2], &counts[3])
	g.FromAt, g.ToAt = microsOf(fromAt), microsOf(toAt)
	if counts[0] != nil && counts[1] != nil && counts[2] != nil && counts[3] != nil {
		g.Counts = &[4]int64{*counts[0], *counts[1], *counts[2], *counts[3]}
	}
	return g, err
}

func scanErased(r pgx.CollectableRow) (d erasedRow, err error) {
	var before, after []byte
	err = r.Scan(&d.Seq, &before, &after, &d.batch)
	copy(d.Before[:], before)
	copy(d.After[:], after)
	return d, err
}

func scanErasure(r pgx.CollectableRow) (x erasureRow, err error) {
	return x, r.Scan(&x.Number, &x.batch, &x.At, &x.By, &x.Reason, &x.Scope, &x.Fingerprint, &x.Deltas, &x.Objects, &x.Documents)
}

func microsOf(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	n := t.UnixMicro()
	return &n
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/pgdial"
)

// An Erasure is a row of erasures_data: what went from the record, and who had it go.
type Erasure struct {
	Number      int64
	At          time.Time
	By          string
	Reason      string
	Scope       string // where it was looked for, "" for everywhere
	Fingerprint []byte // keyed, of the value
	Deltas      int64
	Objects     int64
	Documents   int64
}

// An ErasedDelta is a delta that an erasure changes. Its digest is part of the digest of its batch, and differs afterwards.
type ErasedDelta struct {
	Seq           int64
	Before, After [16]byte
}

// An Erasing is an erasure in its transaction.
type Erasing struct {
	// Number is that of the erasure, Seq that of the last delta on record.
	Number, Seq int64

	tx      pgx.Tx
	cluster int32
	before  head
}

// erasing begins the name of a session that holds the head and waits for its client because that is at work, see Sink.evict.
const erasing = "kuberewind erase"

// BeginErasure takes the head of a cluster's record, so that no recorder commits until the transaction ends. It needs the owner's rights.
func BeginErasure(ctx context.Context, tx pgx.Tx, cluster int32) (*Erasing, error) {
	if _, err := tx.Exec(ctx, `SELECT set_config('application_name', `+pgdial.Rename(1)+`, true)`, erasing); err != nil {
		return nil, err
	}
	before, err := readHead(ctx, tx, cluster, "FOR UPDATE")
	if err != nil {
		return nil, err
	}
	e := &Erasing{tx: tx, cluster: cluster, before: before, Seq: before.seq}
	err = tx.QueryRow(ctx, `SELECT coalesce(max(erasure), 0) + 1 FROM kuberewind.erasures_data WHERE cluster = $1`, cluster).Scan(&e.Number)
	return e, err
}

// Change puts one delta on record as it is without the value. The texts are nil where the row has none.
func (e *Erasing) Change(ctx context.Context, observed time.Time, d ErasedDelta, change, object, exact []byte) error {
	tag, err := e.tx.Exec(ctx, `
		UPDATE kuberewind.deltas_data SET digest = $4, patch = $5::text::jsonb, object = $6::text::json, exact = $7
		WHERE cluster = $1 AND seq = $2 AND observed_at = $3`,
		e.cluster, d.Seq, observed, d.After[:], textOrNull(change), textOrNull(object), exact)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("seq %d was changed in %d rows", d.Seq, tag.RowsAffected())
	}
	if err != nil {
		return err
	}
	_, err = e.tx.Exec(ctx, `INSERT INTO kuberewind.erased_deltas (cluster, seq, batch, digest_before, digest_after) VALUES ($1, $2, $3, $4, $5)`,
		e.cluster, d.Seq, e.before.batch+1, d.Before[:], d.After[:])
	return err
}

// Own puts the owners of a life's first version on record as they are without the value. Its object_id is the seq of that version.
func (e *Erasing) Own(ctx context.Context, id int64, owners []string) error {
	_, err := e.tx.Exec(ctx, `UPDATE kuberewind.lives SET owners = $3 WHERE cluster = $1 AND object_id = $2 AND owners IS DISTINCT FROM $3`, e.cluster, id, owners)
	return err
}

// End puts the erasure on record as a batch of its own, and as an epoch of its own. A running recorder holds versions with the
// erased value in memory, and makes patches against them. The new epoch stops it (I1), so that it begins anew from the record.
// The configuration in force stays that of the epoch before.
func (e *Erasing) End(ctx context.Context, x Erasure, recorder, version string) error {
	x.Number, x.At = e.Number, x.At.UTC().Truncate(time.Microsecond)
	after := head{epoch: e.before.epoch + 1, seq: e.before.seq, batch: e.before.batch + 1, observed: e.before.observed}
	c := newChain()
	c.begin(e.before.digest)
	c.erasure(&x)
	rows, err := e.tx.Query(ctx, `SELECT seq, digest_before, digest_after, batch FROM kuberewind.erased_deltas WHERE cluster = $1 AND batch = $2 ORDER BY seq`, e.cluster, after.batch)
	if err != nil {
		return err
	}
	changed, err := pgx.CollectRows(rows, scanErased)
	if err != nil {
		return err
	}
	for i := range changed {
		c.erased(&changed[i])
	}
	after.digest = c.end(e.cluster, after.epoch, after.batch, after.seq+1, after.seq, after.observed)
	for _, statement := range []struct {
		sql  string
		args []any
	}{
		{`INSERT INTO kuberewind.erasures_data (cluster, erasure, batch, erased_at, erased_by, reason, scope, fingerprint, deltas, objects, documents)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			[]any{e.cluster, x.Number, after.batch, x.At, x.By, x.Reason, x.Scope, x.Fingerprint, x.Deltas, x.Objects, x.Documents}},
		{`INSERT INTO kuberewind.epochs (cluster, epoch, started_at, after_seq, recorder, version, config)
			SELECT cluster, $2, $3, $4, $5, $6, config FROM kuberewind.epochs WHERE cluster = $1 AND epoch = $7`,
			[]any{e.cluster, after.epoch, x.At, after.seq, clean(recorder), clean(version), e.before.epoch}},
		{`INSERT INTO kuberewind.batches (cluster, batch, epoch, first_seq, last_seq, observed_at, committed_at, digest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			[]any{e.cluster, after.batch, after.epoch, after.seq + 1, after.seq, micros(after.observed), x.At, after.digest[:]}},
		{`UPDATE kuberewind.heads SET epoch = $2, batch = $3, digest = $4, spool = NULL, spool_next = NULL WHERE cluster = $1`,
			[]any{e.cluster, after.epoch, after.batch, after.digest[:]}},
	} {
		tag, err := e.tx.Exec(ctx, statement.sql, statement.args...)
		if err == nil && tag.RowsAffected() != 1 {
			err = errors.New("the record has no epoch that could be ended")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func textOrNull(text []byte) *string {
	if text == nil {
		return nil
	}
	s := string(text)
	return &s
}

// An erasedDelta is a row of erased_deltas.
type erasedDelta struct {
	seq, batch    int64
	before, after [16]byte
}

func scanErased(r pgx.CollectableRow) (d erasedDelta, err error) {
	var before, after []byte
	err = r.Scan(&d.seq, &before, &after, &d.batch)
	copy(d.before[:], before)
	copy(d.after[:], after)
	return d, err
}

// An erasureRow is one of erasures_data.
type erasureRow struct {
	Erasure
	batch int64
}

func scanErasure(r pgx.CollectableRow) (x erasureRow, err error) {
	return x, r.Scan(&x.Number, &x.batch, &x.At, &x.By, &x.Reason, &x.Scope, &x.Fingerprint, &x.Deltas, &x.Objects, &x.Documents)
}

// undo gives a delta the digest with which its batch was digested. Each erasure on record names the digest before and after of
// each delta, and is itself in the digest of a batch. So an erased delta does not count as tampered with. A delta that was
// tampered with cannot count as erased.
func (v *verifier) undo(ctx context.Context, d *row) error {
	var erasures []erasedDelta
	err := v.erasedBySeq.through(ctx, func(e *erasedDelta) int64 { return e.seq }, d.seq, d.seq, func(e *erasedDelta) { erasures = append(erasures, *e) })
	for i := len(erasures) - 1; i >= 0 && err == nil; i-- {
		if erasures[i].after != d.digest {
			v.broken(v.report.LastBatch, fmt.Sprintf("seq %d is not what the erasure of batch %d left of it", d.seq, erasures[i].batch))
			return nil
		}
		d.digest = erasures[i].before
	}
	return err
}

// erasures hashes what a batch erased.
func (v *verifier) erasures(ctx context.Context, b *chainedBatch) error {
	err := v.erasuresMade.through(ctx, func(x *erasureRow) int64 { return x.batch }, b.number, b.number, func(x *erasureRow) {
		v.report.Erasures++
		v.chain.erasure(&x.Erasure)
	})
	if err != nil {
		return err
	}
	return v.erasedByBatch.through(ctx, func(e *erasedDelta) int64 { return e.batch }, b.number, b.number, func(e *erasedDelta) {
		v.report.Erased++
		v.chain.erased(e)
	})
}

// unmade looks for erasures that no batch made.
func (v *verifier) unmade(ctx context.Context) error {
	extra, ok, err := v.erasedByBatch.take(ctx)
	if err != nil {
		return err
	}
	if ok {
		v.broken(extra.batch, fmt.Sprintf("seq %d is on record as erased, and no batch did that", extra.seq))
	}
	erasure, ok, err := v.erasuresMade.take(ctx)
	if ok {
		v.broken(erasure.batch, fmt.Sprintf("erasure %d is on record, and no batch did that", erasure.Number))
	}
	return err
}

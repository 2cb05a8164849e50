package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/chain"
	"github.com/kuberewind/kuberewind/internal/pgdial"
)

// An Erasing is an erasure inside its transaction.
type Erasing struct {
	// Number is the number of the erasure, Seq the seq of the last delta on record.
	Number, Seq int64

	tx      pgx.Tx
	cluster int32
	before  head
	changed []chain.ErasedDelta
}

// erasing is the first part of the session's name. Such a session holds the head and may wait for its client while that
// client works; see takeover.evict.
const erasing = "kuberewind erase"

// BeginErasure locks the head of a cluster's record, so that no recorder commits until the transaction ends. It needs
// the owner's rights.
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

// ReplaceDelta replaces a delta on record by a delta without the erased value. A text is nil if the row has none.
func (e *Erasing) ReplaceDelta(ctx context.Context, observed time.Time, d chain.ErasedDelta, change, object, exact []byte) error {
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
	if err == nil {
		e.changed = append(e.changed, d)
	}
	return err
}

// ReplaceOwners replaces the owners of a life's first version by owners without the erased value. The object_id is the seq of
// that version.
func (e *Erasing) ReplaceOwners(ctx context.Context, id int64, owners []string) error {
	_, err := e.tx.Exec(ctx, `UPDATE kuberewind.lives SET owners = $3 WHERE cluster = $1 AND object_id = $2 AND owners IS DISTINCT FROM $3`, e.cluster, id, owners)
	return err
}

// End records the erasure as a batch and an epoch of its own. A running recorder holds versions with the erased value
// in memory, and makes patches against them. The new epoch stops it (I1), so that it starts again from the record. The
// configuration of the previous epoch stays in force.
func (e *Erasing) End(ctx context.Context, x chain.Erasure, recorder, version string) error {
	x.Number, x.At = e.Number, x.At.UTC().Truncate(time.Microsecond)
	after := head{epoch: e.before.epoch + 1, seq: e.before.seq, batch: e.before.batch + 1, observed: e.before.observed}
	c := chain.New()
	c.Begin(e.before.digest)
	c.Erasure(&x)
	slices.SortFunc(e.changed, func(x, y chain.ErasedDelta) int { return cmp.Compare(x.Seq, y.Seq) })
	for i := range e.changed {
		c.Erased(&e.changed[i])
	}
	after.digest = c.Sum(chain.Batch{Cluster: e.cluster, Epoch: after.epoch, Number: after.batch, FirstSeq: after.seq + 1, LastSeq: after.seq, Observed: after.observed})
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

package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

// A Recorded is a row of deltas, by what a copy of the delta that waits elsewhere has as well.
type Recorded struct {
	Observed time.Time
	RV       string
	Deleted  bool
}

// ErrNoMark says that a mark is not on record, or that values were erased since.
var ErrNoMark = errors.New("nothing says what was recorded since: the record does not hold that state, or values were erased after it")

// Queryer is a connection, or a pool of them.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// A Since is what a record holds behind one of its states.
type Since struct {
	At   time.Time // observed_at of the state
	Head time.Time // observed_at now
	rows pgx.Rows
}

// ReadSince gives the deltas behind the commit with this mark, which left a seq of at least afterSeq. It leaves out keyframes
// that were stored because an inferred delete followed at once: no copy of them waits elsewhere. The error may be ErrNoMark.
// Without an error, Since has to be closed.
func ReadSince(ctx context.Context, db Queryer, clusterUID string, mark []byte, afterSeq int64) (*Since, error) {
	s := new(Since)
	var cluster int32
	var batch, seq int64
	err := db.QueryRow(ctx, `
		SELECT c.cluster, b.batch, b.last_seq, b.observed_at, h.observed_at
		FROM kuberewind.clusters c
		JOIN kuberewind.heads h USING (cluster)
		JOIN kuberewind.batches b ON b.cluster = c.cluster AND b.last_seq >= $2 AND b.digest = $3
		WHERE c.uid = $1 AND NOT EXISTS (SELECT FROM kuberewind.erasures_data e WHERE e.cluster = c.cluster AND e.batch > b.batch)`,
		clusterUID, afterSeq, mark).Scan(&cluster, &batch, &seq, &s.At, &s.Head)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNoMark
	}
	if err == nil {
		s.rows, err = db.Query(ctx, `
			SELECT observed_at, rv, type = $4 FROM (
				SELECT seq, observed_at, rv, type, source = $5 AND lead((observed_at, object_id, type, source)) OVER (ORDER BY seq)
					IS NOT DISTINCT FROM (observed_at, object_id, $4::smallint, $6::smallint) AS again
				FROM kuberewind.deltas_data WHERE cluster = $1 AND seq > $2 AND observed_at >= $3) d
			WHERE NOT again ORDER BY seq`,
			cluster, seq, s.At, delta.NumberDeleted, delta.NumberResync, delta.NumberInferred)
	}
	if err != nil {
		return nil, fmt.Errorf("what was recorded since a state of the record: %w", explain(err))
	}
	return s, nil
}

// Next gives the next delta; ok is false if there is none.
func (s *Since) Next() (r Recorded, ok bool, err error) {
	if ok = s.rows.Next(); ok {
		err = s.rows.Scan(&r.Observed, &r.RV, &r.Deleted)
	} else {
		err = s.rows.Err()
	}
	if err != nil {
		return r, false, fmt.Errorf("what was recorded since a state of the record: %w", explain(err))
	}
	return r, ok, nil
}

// Close lets go of the connection.
func (s *Since) Close() { s.rows.Close() }

// ReadSince is ReadSince of the sink's own record.
func (s *Sink) ReadSince(ctx context.Context, mark []byte, afterSeq int64) (*Since, error) {
	return ReadSince(ctx, s.pool, s.cfg.ClusterUID, mark, afterSeq)
}

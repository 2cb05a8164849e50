package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A ClockStep is what three clocks showed when one of them was found to have stepped.
type ClockStep struct {
	Record   time.Time // that of the record, before
	Recorder time.Time // that of the recorder's host
	Database time.Time
	Adopted  bool // whether the record goes on by the host's
}

// ReadClocks asks the database for its time, and for that at which the record of a cluster ends: zero where there is none.
func ReadClocks(ctx context.Context, conn *pgx.Conn, clusterUID string) (database, record time.Time, err error) {
	var ends *time.Time
	err = conn.QueryRow(ctx, `
		SELECT clock_timestamp(), (SELECT h.observed_at FROM kuberewind.heads h JOIN kuberewind.clusters c USING (cluster) WHERE c.uid = $1)`,
		clusterUID).Scan(&database, &ends)
	if err != nil {
		return database, record, fmt.Errorf("ask the database for its time: %w", explain(err))
	}
	if ends != nil {
		record = *ends
	}
	return database, record, nil
}

// DatabaseTime asks the database for its time.
func (s *Sink) DatabaseTime(ctx context.Context) (now time.Time, err error) {
	if err := s.tenure.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return now, fmt.Errorf("ask the database for its time: %w", explain(err))
	}
	return now, nil
}

// RecordClock puts a step of the clock on record. The error may be ErrFenced. It may be called from any goroutine.
func (s *Sink) RecordClock(ctx context.Context, step ClockStep) error {
	err := pgx.BeginFunc(ctx, s.tenure.pool, func(tx pgx.Tx) error {
		head, err := s.tenure.hold(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO kuberewind.clock_steps_data (cluster, epoch, step, after_seq, record_at, recorder_at, database_at, adopted)
			SELECT $1, $2, (SELECT count(*) + 1 FROM kuberewind.clock_steps_data WHERE cluster = $1 AND epoch = $2), $3, $4, $5, $6, $7`,
			s.info.Cluster, s.info.Epoch, head.seq, step.Record, step.Recorder, step.Database, step.Adopted)
		return err
	})
	if err != nil {
		return fmt.Errorf("record a step of the clock: %w", explain(err))
	}
	return nil
}

package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A ClockStep holds the times that three clocks showed when the recorder found that one of them had stepped.
type ClockStep struct {
	Record   time.Time // the record's time, before the step
	Recorder time.Time // the time of the recorder's host
	Database time.Time
	Adopted  bool // whether the record continues with the time of the host
}

// ReadClocks returns the database's time, and the time at which the record of a cluster ends. The second is zero if the
// cluster has no record.
func ReadClocks(ctx context.Context, conn *pgx.Conn, clusterUID string) (database, record time.Time, err error) {
	var ends *time.Time
	err = conn.QueryRow(ctx, `
		SELECT clock_timestamp(), (SELECT h.observed_at FROM kuberewind.heads h JOIN kuberewind.clusters c USING (cluster) WHERE c.uid = $1)`,
		clusterUID).Scan(&database, &ends)
	if err != nil {
		return database, record, fmt.Errorf("read the database's time: %w", explain(err))
	}
	if ends != nil {
		record = *ends
	}
	return database, record, nil
}

// DatabaseTime returns the database's time.
func (s *Sink) DatabaseTime(ctx context.Context) (now time.Time, err error) {
	if err := s.tenure.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return now, fmt.Errorf("read the database's time: %w", explain(err))
	}
	return now, nil
}

// RecordClock records a step of a clock. The error may be ErrFenced. Any goroutine may call it.
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

package history

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Completeness reads which parts of a record are complete, what interrupted it, and what was dropped or erased.
type Completeness struct{ view *view }

// Completeness returns the reader of what is complete in the record.
func (r *Record) Completeness() Completeness { return Completeness{view: r.view} }

// Gaps lists the gaps of the streams in a scope, by number.
func (c Completeness) Gaps(ctx context.Context, scope Scope) ([]Gap, error) {
	return c.view.gaps(ctx, scope)
}

// Pauses lists the pauses of the record, by time.
func (c Completeness) Pauses(ctx context.Context) ([]Pause, error) { return c.view.pauses(ctx) }

// An Epoch is a period in which one recorder held the cluster.
type Epoch struct {
	Number            int64
	StartedAt         time.Time
	AfterSeq          int64 // last seq of the previous epoch
	Recorder, Version string
	Config            []byte // JSON: what was included and excluded
}

// Epochs lists the epochs, oldest first: which recorder recorded the cluster, and with which configuration.
func (c Completeness) Epochs(ctx context.Context) ([]Epoch, error) {
	rows, err := c.view.db.Query(ctx, `
		SELECT epoch, started_at, after_seq, recorder, version, config::text
		FROM kuberewind.record_epochs WHERE cluster = $1 ORDER BY epoch`, c.view.cluster.Number)
	if err != nil {
		return nil, fmt.Errorf("read the epochs of the record: %w", err)
	}
	epochs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Epoch, err error) {
		err = row.Scan(&e.Number, &e.StartedAt, &e.AfterSeq, &e.Recorder, &e.Version, &e.Config)
		e.StartedAt = e.StartedAt.UTC()
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the epochs of the record: %w", err)
	}
	return epochs, nil
}

// A ClockStep is a moment at which a recorder's clock stepped, or disagreed with the database's clock.
type ClockStep struct {
	AfterSeq             int64
	RecordAt, RecorderAt time.Time // the record's time before the step, and what the host's clock showed
	DatabaseAt           time.Time
	Adopted              bool // the recorder adopted the clock of the host
}

// ClockSteps lists the steps of the recorders' clocks, oldest first.
func (c Completeness) ClockSteps(ctx context.Context) ([]ClockStep, error) {
	rows, err := c.view.db.Query(ctx, `
		SELECT after_seq, record_at, recorder_at, database_at, adopted FROM kuberewind.clock_steps WHERE cluster = $1 ORDER BY epoch, step`, c.view.cluster.Name)
	if err != nil {
		return nil, fmt.Errorf("read the steps of the clocks: %w", err)
	}
	steps, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s ClockStep, err error) {
		err = row.Scan(&s.AfterSeq, &s.RecordAt, &s.RecorderAt, &s.DatabaseAt, &s.Adopted)
		s.RecordAt, s.RecorderAt, s.DatabaseAt = s.RecordAt.UTC(), s.RecorderAt.UTC(), s.DatabaseAt.UTC()
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the steps of the clocks: %w", err)
	}
	return steps, nil
}

// Revision returns a number that grows whenever a day is dropped or a value is erased. Objects that were rebuilt under a
// lower revision may hold an erased value.
func (c Completeness) Revision(ctx context.Context) (n int64, err error) {
	err = c.view.db.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM kuberewind.prunes WHERE cluster = $1) + (SELECT count(*) FROM kuberewind.erasures WHERE cluster = $1)`, c.view.cluster.Name).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("read the prunes and erasures: %w", err)
	}
	return n, nil
}

package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Querier is a connection or pool that can run queries.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Options select the days to drop. OlderThan or MaxBytes must be set. If both are set, a day is dropped if it exceeds either.
type Options struct {
	// OlderThan drops days that ended longer ago than this, by the database's clock; zero for none.
	OlderThan time.Duration
	// MaxBytes drops the oldest days until the other days have no more bytes than this; zero for no bound.
	MaxBytes int64
	// Reason is recorded.
	Reason string
	// DryRun reports the days to drop, and drops none.
	DryRun bool
	// Attempts bounds the attempts to drop a day that is being read; zero means 60.
	Attempts int
	// Pause is the time between two attempts; zero means a second.
	Pause time.Duration
}

const (
	defaultAttempts = 60
	defaultPause    = time.Second
)

// Day is a day that was dropped, or that the options selected.
type Day struct {
	Day   string `json:"day"`
	Bytes int64  `json:"bytes"`
	// Why is the reason to drop the day: age or size.
	Why string `json:"why"`
}

// Report is the result of Prune.
type Report struct {
	DryRun  bool  `json:"dryRun"`
	Dropped []Day `json:"dropped"` // with DryRun, the days that would be dropped
	// Kept is the first selected day that could not be dropped, and Obstacle is the reason. All later days stay, too.
	Obstacle string `json:"obstacle,omitempty"`
	Kept     *Day   `json:"kept,omitempty"`
	// Bytes is the size of all days before Prune, Left the size of the days after it.
	Bytes int64 `json:"bytes"`
	Left  int64 `json:"left"`
	// Checkpoints, Lives and Documents count the dropped rows to which only the dropped days referred.
	Checkpoints int64 `json:"checkpoints"`
	Lives       int64 `json:"lives"`
	Documents   int64 `json:"documents"`
}

// ErrBusy says that a day was in use during all attempts. An autovacuum gives way only to a session that waits for deadlock_timeout, a second
// by default. An attempt does not wait that long.
var ErrBusy = errors.New("the day is in use: a query that reads it, or an autovacuum, has to end first (see pg_stat_activity)")

// Prune drops the days that the options select. If it returns an error, the report lists the days that it dropped before.
func Prune(ctx context.Context, db Querier, o Options) (Report, error) {
	if o.Attempts == 0 {
		o.Attempts = defaultAttempts
	}
	if o.Pause == 0 {
		o.Pause = defaultPause
	}
	p := &pruning{db: db, options: o, report: Report{DryRun: o.DryRun, Dropped: []Day{}}}
	if err := p.run(ctx); err != nil {
		return p.report, fmt.Errorf("prune the record: %w", err)
	}
	return p.report, nil
}

type pruning struct {
	db      Querier
	options Options
	report  Report
}

type partition struct {
	day   time.Time
	bytes int64
	old   bool // it ended longer ago than OlderThan
}

func (p *pruning) run(ctx context.Context) error {
	partitions, err := p.partitions(ctx)
	if err != nil {
		return err
	}
	for _, part := range partitions {
		p.report.Bytes += part.bytes
	}
	p.report.Left = p.report.Bytes
	for _, part := range partitions {
		why := p.why(part)
		if why == "" {
			break
		}
		day := Day{Day: part.day.Format(time.DateOnly), Bytes: part.bytes, Why: why}
		dropped, obstacle, err := p.drop(ctx, day)
		if err != nil {
			return fmt.Errorf("day %s: %w", day.Day, err)
		}
		if obstacle != "" {
			p.report.Obstacle, p.report.Kept = obstacle, &day
			break
		}
		if dropped {
			p.report.Dropped = append(p.report.Dropped, day)
		}
		p.report.Left -= day.Bytes
	}
	if p.options.DryRun {
		return nil
	}
	// Do this even if no day was dropped: an earlier call may have been killed before this step.
	return p.retry(ctx, func() error {
		return p.db.QueryRow(ctx, `SELECT checkpoints, lives, documents FROM kuberewind.prune_rest()`).
			Scan(&p.report.Checkpoints, &p.report.Lives, &p.report.Documents)
	})
}

// why returns the reason to drop a day, or "" if it is not selected.
func (p *pruning) why(part partition) string {
	switch {
	case p.options.OlderThan > 0 && part.old:
		return "age"
	case p.options.MaxBytes > 0 && p.report.Left > p.options.MaxBytes:
		return "size"
	}
	return ""
}

// partitions returns the days, oldest first. The database computes their age, so that a wrong clock of the host cannot drop a day.
func (p *pruning) partitions(ctx context.Context) ([]partition, error) {
	rows, err := p.db.Query(ctx, `
		SELECT day, bytes, (day + 1)::timestamp AT TIME ZONE 'UTC' <= clock_timestamp() - $1::interval FROM kuberewind.record_partitions ORDER BY day`,
		p.options.OlderThan)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (part partition, err error) {
		return part, row.Scan(&part.day, &part.bytes, &part.old)
	})
}

// drop drops a day, or returns the obstacle. If it returns neither, another pruner has dropped the day at the same time.
func (p *pruning) drop(ctx context.Context, day Day) (dropped bool, obstacle string, err error) {
	if p.options.DryRun {
		obstacle, err = p.obstacle(ctx, day)
		return true, obstacle, err
	}
	err = p.retry(ctx, func() error {
		var bytes int64
		return p.db.QueryRow(ctx, `SELECT kuberewind.prune_day($1::text::date, $2)`, day.Day, p.options.Reason).Scan(&bytes)
	})
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == pgerrcode.ObjectNotInPrerequisiteState {
		obstacle = refusal.Message
		var gone bool
		err = p.db.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM kuberewind.record_partitions WHERE day = $1::text::date)`, day.Day).Scan(&gone)
		if gone {
			obstacle = ""
		}
		return false, obstacle, err
	}
	return err == nil, "", err
}

// obstacle returns the reason why a day could not be dropped after the earlier days, or "" if it could.
func (p *pruning) obstacle(ctx context.Context, day Day) (string, error) {
	var obstacle *string
	err := p.db.QueryRow(ctx, `SELECT kuberewind.prune_obstacle($1::text::date, $2)`, day.Day, len(p.report.Dropped) > 0).Scan(&obstacle)
	if err != nil || obstacle == nil {
		return "", err
	}
	return fmt.Sprintf("the day %s cannot be dropped: %s", day.Day, *obstacle), nil
}

// retry calls try again while readers block it.
func (p *pruning) retry(ctx context.Context, try func() error) error {
	for attempt := 1; ; attempt++ {
		err := try()
		var refusal *pgconn.PgError
		if !errors.As(err, &refusal) || refusal.Code != pgerrcode.LockNotAvailable && refusal.Code != pgerrcode.DeadlockDetected {
			return err
		}
		if attempt == p.options.Attempts {
			return fmt.Errorf("%w (tried %d times)", ErrBusy, attempt)
		}
		timer := time.NewTimer(p.options.Pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

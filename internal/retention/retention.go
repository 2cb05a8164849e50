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

// Querier is what Prune needs of a connection or pool.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Options say what is to go. One of OlderThan and MaxBytes is set, or both: then a day goes for either.
type Options struct {
	// OlderThan drops days that ended longer ago than this, by the database's clock; zero for none.
	OlderThan time.Duration
	// MaxBytes drops the oldest days until the days that are left have no more bytes; zero for no bound.
	MaxBytes int64
	// Reason is put on record.
	Reason string
	// DryRun says what would go, and drops nothing.
	DryRun bool
	// Attempts bounds how often a day that is being read is tried; zero means 60.
	Attempts int
	// Pause is between two attempts; zero means a second.
	Pause time.Duration
}

const (
	defaultAttempts = 60
	defaultPause    = time.Second
)

// A Day is one that went, or that should have.
type Day struct {
	Day   string `json:"day"`
	Bytes int64  `json:"bytes"`
	// Why it is to go: age or size.
	Why string `json:"why"`
}

// A Report is what was done.
type Report struct {
	DryRun  bool  `json:"dryRun"`
	Dropped []Day `json:"dropped"` // with DryRun, those that would be
	// Obstacle is why the day Kept, which was to go, has to stay, and all after it.
	Obstacle string `json:"obstacle,omitempty"`
	Kept     *Day   `json:"kept,omitempty"`
	// Bytes is the size of the days before, Left of those that are left.
	Bytes int64 `json:"bytes"`
	Left  int64 `json:"left"`
	// The parts to which only the dropped days referred.
	Checkpoints int64 `json:"checkpoints"`
	Lives       int64 `json:"lives"`
	Documents   int64 `json:"documents"`
}

// ErrBusy says that a day was in use all the time. An autovacuum gives way to who waits for deadlock_timeout, a second by default: longer than is waited here.
var ErrBusy = errors.New("the day is in use: a query that reads it, or an autovacuum, has to end first (see pg_stat_activity)")

// Prune drops what the options say. The report is true also where an error comes with it.
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
	// Also where nothing went: an earlier call may have been killed before it came to this.
	return p.retry(ctx, func() error {
		return p.db.QueryRow(ctx, `SELECT checkpoints, lives, documents FROM kuberewind.prune_rest()`).
			Scan(&p.report.Checkpoints, &p.report.Lives, &p.report.Documents)
	})
}

// why a day is to go, empty if it is not.
func (p *pruning) why(part partition) string {
	switch {
	case p.options.OlderThan > 0 && part.old:
		return "age"
	case p.options.MaxBytes > 0 && p.report.Left > p.options.MaxBytes:
		return "size"
	}
	return ""
}

// partitions gives the days, oldest first. How old they are is the database's to say: a wrong clock of the host must not cost a day.
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

// drop gives the obstacle, if there is one. If there is none, and the day was not dropped, another pruner has dropped it at the
// same time.
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

// obstacle is what stands in the way of the day when those before it are gone.
func (p *pruning) obstacle(ctx context.Context, day Day) (string, error) {
	var obstacle *string
	err := p.db.QueryRow(ctx, `SELECT kuberewind.prune_obstacle($1::text::date, $2)`, day.Day, len(p.report.Dropped) > 0).Scan(&obstacle)
	if err != nil || obstacle == nil {
		return "", err
	}
	return fmt.Sprintf("the day %s cannot be dropped: %s", day.Day, *obstacle), nil
}

// retry tries again what readers are in the way of.
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

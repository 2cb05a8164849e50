package postgres

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// daysAhead and ensureEvery keep partitions ready. If the database cannot make one, the operator has three days to
	// repair it.
	daysAhead   = 3
	ensureEvery = time.Hour
)

// partitions makes the partition of each day before rows need it. It belongs to the goroutine that calls Commit.
type partitions struct {
	pool    *pgxpool.Pool
	now     func() time.Time
	log     *slog.Logger
	ensured time.Time // when partitions were last made ahead
}

// ensureAhead makes the partitions of today and of the next daysAhead days.
func (p *partitions) ensureAhead(ctx context.Context) error {
	now := p.now()
	today := dayOf(now.UnixMicro())
	for day := today; day <= today+daysAhead; day++ {
		if err := p.ensureDay(ctx, day); err != nil {
			return err
		}
	}
	p.ensured = now
	return nil
}

// ensureSometimes makes partitions ahead, once an hour. It only logs a failure, because Commit makes a missing
// partition on demand.
func (p *partitions) ensureSometimes(ctx context.Context) {
	if now := p.now(); now.Sub(p.ensured).Abs() < ensureEvery {
		return
	}
	limited, cancel := context.WithTimeout(ctx, ensurePatience)
	defer cancel()
	if err := p.ensureAhead(limited); err != nil {
		p.ensured = p.now()
		p.log.WarnContext(ctx, "making partitions ahead failed; a missing one is made on demand", "error", explain(err))
	}
}

// ensurePatience bounds how long making partitions ahead may delay a commit.
const ensurePatience = 10 * time.Second

// ensureBatch makes the partitions that a batch needs.
func (p *partitions) ensureBatch(ctx context.Context, b *Batch) error {
	for _, d := range b.days {
		if err := p.ensureDay(ctx, d.day); err != nil {
			return err
		}
	}
	return p.ensureDay(ctx, dayOf(b.after.observed))
}

// ensureDay makes the partition of a day. It is a transaction of its own, because its lock is held until the
// transaction ends.
func (p *partitions) ensureDay(ctx context.Context, day int32) error {
	_, err := p.pool.Exec(ctx, `SELECT kuberewind.ensure_day($1::date)`, dayText(day))
	return err
}

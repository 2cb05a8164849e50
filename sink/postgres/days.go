package postgres

import (
	"context"
	"time"
)

// ensureAhead makes the partitions of today and the days to come.
func (s *Sink) ensureAhead(ctx context.Context) error {
	now := s.now()
	today := dayOf(now.UnixMicro())
	for day := today; day <= today+daysAhead; day++ {
		if err := s.ensureDay(ctx, day); err != nil {
			return err
		}
	}
	s.ensured = now
	return nil
}

// ensureSometimes makes partitions ahead once an hour. A failure is only told: a partition that is missing in the end is made on demand.
func (s *Sink) ensureSometimes(ctx context.Context) {
	if now := s.now(); now.Sub(s.ensured).Abs() < ensureEvery {
		return
	}
	limited, cancel := context.WithTimeout(ctx, ensurePatience)
	defer cancel()
	if err := s.ensureAhead(limited); err != nil {
		s.ensured = s.now()
		s.log.WarnContext(ctx, "partitions could not be made ahead of need", "error", explain(err))
	}
}

// ensurePatience bounds what making partitions ahead may hold up a commit.
const ensurePatience = 10 * time.Second

// ensureBatch makes the partitions that a batch needs.
func (s *Sink) ensureBatch(ctx context.Context, b *Batch) error {
	for _, d := range b.days {
		if err := s.ensureDay(ctx, d.day); err != nil {
			return err
		}
	}
	return s.ensureDay(ctx, dayOf(b.observed))
}

// ensureDay is a transaction of its own, because the lock that it takes is held until its end.
func (s *Sink) ensureDay(ctx context.Context, day int32) error {
	_, err := s.pool.Exec(ctx, `SELECT kuberewind.ensure_day($1::date)`, dayText(day))
	return err
}

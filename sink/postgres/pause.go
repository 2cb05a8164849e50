package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/internal/times"
)

// StartAfter moves Info.Started behind the moment seen. Until that moment an earlier writer stored what it observed, or
// this recorder observed nothing. The clock of the earlier writer may have been ahead of this recorder's. Call
// StartAfter before RecordPause.
func (s *Sink) StartAfter(seen time.Time) {
	s.info.Started = times.Later(s.info.Started, seen.Add(time.Microsecond))
}

// RecordPause records that no recorder observed the time since the last commit. If an earlier writer stored later
// observations, the pause begins at seen. Call it before the first commit. If no commit follows, the pause of the next
// writer begins where this one does.
func (s *Sink) RecordPause(ctx context.Context, seen time.Time) error {
	from := times.Later(s.info.Observed, seen)
	if !s.info.Resumed || from.After(s.info.Started) {
		return nil
	}
	tag, err := s.tenure.pool.Exec(ctx, `
		INSERT INTO kuberewind.pauses_data (cluster, epoch, from_at, to_at, after_seq)
		SELECT cluster, epoch, $3, $4, $5 FROM kuberewind.heads WHERE cluster = $1 AND epoch = $2 FOR SHARE`,
		s.info.Cluster, s.info.Epoch, from, s.info.Started, s.info.AfterSeq)
	if err == nil && tag.RowsAffected() == 0 {
		err = s.tenure.fenced(ctx)
	}
	if err != nil {
		return fmt.Errorf("record the pause since the last commit: %w", explain(err))
	}
	return nil
}

package history

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

const (
	// LagWithin is how far a record may be behind its cluster without a word. A recorder says each second that it records, also while
	// nothing happens.
	LagWithin = 10 * time.Second
	// QuietWithin is how long a recorder that sees its cluster may commit nothing: servers send each stream a bookmark every minute.
	QuietWithin = 2 * time.Minute
)

// A Pulse says whether a record goes on.
type Pulse struct {
	Batch       int64     // number of the last commit, 0 before the first
	ObservedAt  time.Time // until when the recorder was watching by then
	CommittedAt time.Time // when that was, by the clock of the recorder; zero if it is not known
	Recorder    string    // the one that was last chosen to record, "" if none was
	RenewedAt   time.Time // when it last said that it records, by the clock of the database; zero if it has ended, or the last commit is not its own
	Now         time.Time // by the clock of the database
}

// Pulse reads whether the record goes on. A recorder that has committed nothing yet may not have seen what happened before it.
func (r *Record) Pulse(ctx context.Context) (Pulse, error) { return r.pulse(ctx, r.pool) }

func (r *Record) pulse(ctx context.Context, db querier) (p Pulse, err error) {
	var committed, renewed *time.Time
	err = db.QueryRow(ctx, `
		SELECT h.batch, h.observed_at, b.committed_at, coalesce(l.recorder, ''), CASE WHEN e.recorder = l.recorder THEN l.renewed_at END, clock_timestamp()
		FROM kuberewind.record_heads h
		LEFT JOIN kuberewind.record_batches b ON b.cluster = h.cluster AND b.batch = h.batch AND b.observed_at = h.observed_at
		LEFT JOIN kuberewind.record_epochs e ON e.cluster = h.cluster AND e.epoch = h.epoch AND e.epoch = b.epoch
		LEFT JOIN kuberewind.recorders l ON l.cluster = $2
		WHERE h.cluster = $1`, r.cluster.Number, r.cluster.Name).Scan(&p.Batch, &p.ObservedAt, &committed, &p.Recorder, &renewed, &p.Now)
	if err != nil {
		return Pulse{}, fmt.Errorf("read whether the record goes on: %w", err)
	}
	p.ObservedAt, p.CommittedAt, p.RenewedAt, p.Now = p.ObservedAt.UTC(), timeOf(committed), timeOf(renewed), p.Now.UTC()
	return p, nil
}

// Recorded reports whether a recorder says that it records. It says so each second. The pulse was read so long ago.
func (p Pulse) Recorded(ago time.Duration) bool {
	return !p.RenewedAt.IsZero() && p.Now.Add(ago).Sub(p.RenewedAt) <= LagWithin
}

// Behind is how far the record is behind its cluster, 0 if it follows it. The pulse was read so long ago. It means nothing if nobody records.
func (p Pulse) Behind(ago time.Duration) time.Duration {
	if lag := p.committed().Sub(p.ObservedAt); lag > LagWithin {
		return lag
	}
	if quiet := p.Now.Add(ago).Sub(p.committed()); quiet > QuietWithin {
		return quiet
	}
	return 0
}

func (p Pulse) committed() time.Time { return cmp.Or(p.CommittedAt, p.ObservedAt) }

// Outdated says why the cluster may have changed since the last commit, "" if the record follows it. The pulse was read so long ago.
func (p Pulse) Outdated(ago time.Duration) string {
	behind, stamp := p.Behind(ago), p.committed().Truncate(time.Millisecond).Format(time.RFC3339Nano)
	switch {
	case !p.Recorded(ago):
		return fmt.Sprintf("no recorder records this cluster: the last commit was at %s, and the cluster may have changed since", stamp)
	case behind == 0:
		return ""
	case p.committed().Sub(p.ObservedAt) > LagWithin:
		return fmt.Sprintf("the recorder is %s behind the cluster: the last commit was at %s", behind.Round(time.Second), stamp)
	}
	return fmt.Sprintf("the recorder %s runs and has committed nothing for %s, perhaps because it cannot reach the cluster: the last commit was at %s",
		p.Recorder, behind.Round(time.Second), stamp)
}

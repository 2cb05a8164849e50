package history

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

const (
	// LagWithin is how far a record may be behind its cluster before Condition reports it. A recorder reports every second
	// that it records, even if nothing happens.
	LagWithin = 10 * time.Second
	// QuietWithin is how long a recorder that sees its cluster may commit nothing: servers send each stream a bookmark
	// every minute.
	QuietWithin = 2 * time.Minute
)

// A Pulse says whether a recorder still writes the record.
type Pulse struct {
	Batch       int64     // number of the last commit, 0 before the first
	ObservedAt  time.Time // until when the recorder was watching, as of that commit
	CommittedAt time.Time // when the recorder committed, by its own clock; zero if unknown
	Recorder    string    // the recorder that was last elected, "" if none was
	ChosenAt    time.Time // when that recorder last renewed its lease, by the clock of the database; zero if it has ended
	RenewedAt   time.Time // the same; zero if the last commit is not its own
	Now         time.Time // by the clock of the database
}

// Pulse reads whether a recorder still writes the record. If the elected recorder has committed nothing yet, changes before
// its start may still be missing.
func (c Commits) Pulse(ctx context.Context) (p Pulse, err error) {
	var committed, chosen, renewed *time.Time
	err = c.view.db.QueryRow(ctx, `
		SELECT h.batch, h.observed_at, b.committed_at, coalesce(l.recorder, ''), l.renewed_at, CASE WHEN e.recorder = l.recorder THEN l.renewed_at END, clock_timestamp()
		FROM kuberewind.record_heads h
		LEFT JOIN kuberewind.record_batches b ON b.cluster = h.cluster AND b.batch = h.batch AND b.observed_at = h.observed_at
		LEFT JOIN kuberewind.record_epochs e ON e.cluster = h.cluster AND e.epoch = h.epoch AND e.epoch = b.epoch
		LEFT JOIN kuberewind.recorders l ON l.cluster = $2
		WHERE h.cluster = $1`, c.view.cluster.Number, c.view.cluster.Name).Scan(&p.Batch, &p.ObservedAt, &committed, &p.Recorder, &chosen, &renewed, &p.Now)
	if err != nil {
		return Pulse{}, fmt.Errorf("read the state of the recorder: %w", err)
	}
	p.ObservedAt, p.CommittedAt, p.ChosenAt, p.RenewedAt, p.Now = p.ObservedAt.UTC(), timeOf(committed), timeOf(chosen), timeOf(renewed), p.Now.UTC()
	return p, nil
}

// A Condition says whether a recorder keeps the record up to date.
type Condition string

// These are the conditions.
const (
	Following Condition = "following" // the record is at most LagWithin behind its cluster
	Behind    Condition = "behind"    // the last commit came more than LagWithin after the changes in it
	Quiet     Condition = "quiet"     // the recorder runs, but has committed nothing for QuietWithin; perhaps it cannot reach the cluster
	Starting  Condition = "starting"  // a recorder was elected, and has committed nothing yet
	Stopped   Condition = "stopped"   // no recorder runs
)

// Condition returns the condition of the record. The pulse was read the duration ago before now. Condition compares the
// recorder's clock with the database's.
func (p Pulse) Condition(ago time.Duration) Condition {
	now := p.Now.Add(ago)
	said := func(at time.Time) bool { return !at.IsZero() && now.Sub(at) <= LagWithin }
	switch {
	case p.RenewedAt.IsZero() && said(p.ChosenAt):
		return Starting
	case !said(p.RenewedAt):
		return Stopped
	case p.Quiet(ago) > QuietWithin:
		return Quiet
	case p.Lag() > LagWithin:
		return Behind
	}
	return Following
}

// Committed returns when the recorder made the last commit, by its own clock.
func (p Pulse) Committed() time.Time { return cmp.Or(p.CommittedAt, p.ObservedAt) }

// Lag returns how long after its changes the last commit came.
func (p Pulse) Lag() time.Duration { return p.Committed().Sub(p.ObservedAt) }

// Quiet returns for how long the recorder has committed nothing. The pulse was read the duration ago before now.
func (p Pulse) Quiet(ago time.Duration) time.Duration { return p.Now.Add(ago).Sub(p.Committed()) }

// Outdated returns why the cluster may have changed since the last commit, "" if the record follows it. The pulse was read
// the duration ago before now.
func (p Pulse) Outdated(ago time.Duration) string {
	var why string
	switch p.Condition(ago) {
	case Following:
		return ""
	case Behind:
		why = fmt.Sprintf("the recorder is %s behind the cluster", p.Lag().Round(time.Second))
	case Quiet:
		why = fmt.Sprintf("the recorder %s runs and has committed nothing for %s, perhaps because it cannot reach the cluster", p.Recorder, p.Quiet(ago).Round(time.Second))
	case Starting:
		why = fmt.Sprintf("the recorder %s was chosen and has committed nothing yet", p.Recorder)
	case Stopped:
		why = "no recorder records this cluster"
	}
	return fmt.Sprintf("%s: the last commit was at %s, and the cluster may have changed since", why, p.Committed().Truncate(time.Millisecond).Format(time.RFC3339Nano))
}

package clock

import (
	"context"
	"log/slog"
	"time"

	"github.com/kuberewind/kuberewind/sink/postgres"
)

// watchEvery is how often the clocks are compared.
const watchEvery = 10 * time.Second

// Record returns the time of the database, and stores steps of the clock.
type Record interface {
	DatabaseTime(ctx context.Context) (time.Time, error)
	RecordClock(ctx context.Context, step postgres.ClockStep) error
}

// Keeper watches the wall clock for steps of more than a minute. It records each step. It adopts a step only if the database's clock agrees.
// It belongs to one goroutine.
type Keeper struct {
	clock  *Clock
	record Record
	log    *slog.Logger

	refused time.Duration // the step that is recorded as not adopted, 0 for none
}

// NewKeeper returns a Keeper for a clock.
func NewKeeper(c *Clock, record Record, log *slog.Logger) *Keeper {
	return &Keeper{clock: c, record: record, log: log}
}

// Begin records an unusual state at the start of a recorder: clocks that disagree, or a record that is ahead of both.
func (k *Keeper) Begin(ctx context.Context, database time.Time) error {
	wall, now := k.clock.host.Wall(), k.clock.Now()
	step := k.clock.step()
	adopted := agree(wall, database)
	if adopted && agree(wall, now) {
		return nil
	}
	if step.Abs() > maxStep {
		k.refused = step
	}
	k.report(adopted, now, wall, database)
	return k.record.RecordClock(ctx, postgres.ClockStep{Record: now, Recorder: wall, Database: database, Adopted: adopted})
}

// look compares the clocks once.
func (k *Keeper) look(ctx context.Context) error {
	step := k.clock.step()
	if step.Abs() <= maxStep {
		k.refused = 0
		return nil
	}
	database, err := k.record.DatabaseTime(ctx)
	if err != nil {
		return err
	}
	wall := k.clock.host.Wall()
	adopted := agree(wall, database)
	if !adopted && k.refused != 0 && (step-k.refused).Abs() <= maxStep {
		return nil
	}
	now := k.clock.Now()
	if err := k.record.RecordClock(ctx, postgres.ClockStep{Record: now, Recorder: wall, Database: database, Adopted: adopted}); err != nil {
		return err
	}
	k.report(adopted, now, wall, database)
	k.refused = step
	if adopted {
		k.clock.set(k.clock.host.Wall())
		k.refused = 0
	}
	return nil
}

func (k *Keeper) report(adopted bool, record, wall, database time.Time) {
	log := k.log.With("host", wall, "database", database, "record", record)
	switch {
	case !adopted:
		log.Error("the clocks of this host and of the database do not agree; set the one that is wrong")
	case record.After(wall.Add(maxStep)):
		log.Error("the record is ahead of the clocks: observed_at stands still until they have caught up")
	default:
		log.Warn("the clock of this host has stepped, and the database's agrees: the record follows it")
	}
}

// Run checks the clocks until ctx ends. If a check fails, Run retries, and adopts no step until a check succeeds.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("checking a step of the clock failed; retrying", "error", err)
		}
	}
}

package rollback

import (
	"context"
	"log/slog"
	"time"

	"github.com/kuberewind/kuberewind/reflector"
)

const (
	// noteEvery is how often it is noted where each etcd is.
	noteEvery = 5 * time.Second
	// QuietMost is how often a quiet stream is looked at where etcd keeps much.
	QuietMost = 90 * time.Second
	// notedFor is how long a note is kept: to know of more history would change nothing. It bounds the notes of an etcd to some
	// hundred, as one is made each noteEvery.
	notedFor = 10 * time.Minute
)

// note says up to when a revision was the newest that was known of an etcd.
type note struct {
	revision uint64
	until    time.Time
}

// depth measures how much history one etcd keeps. The server does not say: what can be read tells. It belongs to the goroutine of
// Measure.
type depth struct {
	notes    []note // in order
	nextRead time.Time
}

// measures are those of each etcd.
type measures map[*etcd]*depth

// Measure measures how much history each etcd keeps, until ctx ends.
func (r *Streams) Measure(ctx context.Context, log *slog.Logger) {
	all := measures{}
	ticker := time.NewTicker(noteEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := r.measure(ctx, all); err != nil && ctx.Err() == nil {
			log.Debug("how much history etcd keeps was not measured", "error", err)
		}
	}
}

// measure notes where each etcd is, and where it is due reads the oldest note.
func (r *Streams) measure(ctx context.Context, all measures) (failed error) {
	present := measures{}
	for _, c := range r.newestOfEach() {
		etcd, revision := etcdAndPosition(c)
		d := all[etcd]
		if d == nil {
			d = &depth{}
		}
		present[etcd] = d
		d.note(revision, time.Now())
		if time.Now().Before(d.nextRead) {
			continue
		}
		history, err := d.read(ctx, c)
		if err != nil {
			failed = err // What was measured last stands.
			continue
		}
		r.mu.Lock()
		etcd.kept = history
		r.mu.Unlock()
		d.nextRead = time.Now().Add(reflector.QuietEvery(history, QuietMost) - noteEvery/2) // at the tick that comes next to it
	}
	clear(all)
	for etcd, d := range present {
		all[etcd] = d
	}
	return failed
}

// reachedOf is the etcd of the stream, and where the stream is.
func etcdAndPosition(c *Stream) (in *etcd, revision uint64) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.etcd, c.progress.position
}

// Kept implements reflector.Revisions.
func (c *Stream) Kept() time.Duration {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.etcd.kept
}

// note takes down that a revision is the newest that is known. One that is older than what was noted is of another history.
func (d *depth) note(revision uint64, now time.Time) {
	if n := len(d.notes); n > 0 && d.notes[n-1].revision == revision {
		d.notes[n-1].until = now
		return
	} else if n > 0 && d.notes[n-1].revision > revision {
		d.notes = nil
	}
	d.notes = append(d.notes, note{revision, now})
	for now.Sub(d.notes[0].until) > notedFor {
		d.notes = d.notes[1:]
	}
}

// read gives the age of the oldest note that etcd can still read, and drops those that it cannot. That is one read, and a few more after a
// compaction: what is older than one that is forgotten is forgotten, too.
func (d *depth) read(ctx context.Context, c *Stream) (time.Duration, error) {
	forgotten, readable := -1, len(d.notes)
	for at := 0; forgotten+1 < readable; at = (forgotten + 1 + readable) / 2 {
		switch result, err := c.ask.lookUntilAnswered(ctx, servedVersion{}, d.notes[at].revision); {
		case err != nil:
			return 0, err
		case result == inconclusive, result == future:
			forgotten = at
		default:
			readable = at
		}
	}
	d.notes = d.notes[readable:]
	if len(d.notes) == 0 {
		return 0, nil
	}
	return time.Since(d.notes[0].until), nil
}

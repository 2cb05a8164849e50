package rollback

import (
	"context"
	"log/slog"
	"time"

	"github.com/kuberewind/kuberewind/reflector"
)

const (
	// noteEvery is how often the recorder notes which revision each etcd has reached.
	noteEvery = 5 * time.Second
	// QuietMost is how often a quiet stream is looked at if etcd keeps much history.
	QuietMost = 90 * time.Second
	// notedFor is how long a note is kept. To know of more history would change nothing. It bounds the notes of an
	// etcd to some hundred, since one is made each noteEvery.
	notedFor = 10 * time.Minute
)

// note says until when a revision was the newest known one of an etcd.
type note struct {
	revision uint64
	until    time.Time
}

// depth measures how much history one etcd keeps. The server does not say it, so depth finds the oldest revision
// that can still be read. It belongs to the goroutine of Measure.
type depth struct {
	notes    []note // in order
	nextRead time.Time
}

// measures holds the depth of each etcd.
type measures map[*etcdState]*depth

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
			log.Debug("measuring the history that etcd keeps failed; retrying in 5s", "error", err)
		}
	}
}

// measure notes which revision each etcd has reached. If an etcd is due, measure looks for its oldest readable
// note.
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
		keptHistory, err := d.read(ctx, c)
		if err != nil {
			failed = err // The last measurement stays.
			continue
		}
		r.mu.Lock()
		etcd.keptHistory = keptHistory
		r.mu.Unlock()
		d.nextRead = time.Now().Add(reflector.QuietEvery(keptHistory, QuietMost) - noteEvery/2) // at the nearest tick
	}
	clear(all)
	for etcd, d := range present {
		all[etcd] = d
	}
	return failed
}

// etcdAndPosition returns the stream's etcd, and its position.
func etcdAndPosition(c *Stream) (in *etcdState, revision uint64) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.etcd, c.progress.position
}

// Kept implements reflector.Revisions. It returns how much history the stream's etcd keeps, 0 if that is not known.
func (c *Stream) Kept() time.Duration {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.etcd.keptHistory
}

// note notes that a revision is the newest one now. If an older note has a higher revision, the old notes are of
// another history, and note drops them.
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

// read returns the age of the oldest note that etcd can still read, and drops the notes that it cannot. That takes
// one read, and a few more after a compaction: if etcd has compacted one revision, it has compacted all before it.
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

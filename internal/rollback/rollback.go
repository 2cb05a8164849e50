package rollback

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
)

// A rollback is an etcd that was put back to an older state. It is one event: one entry of the queue opens the gaps of all
// streams that are not proved to be in another etcd, in one transaction.
//
// What holds:
//
//   - Each version that is lost lies in a gap. A gap may begin too early.
//   - A gap begins at the stream's own position, or at an earlier version that etcd was seen to hold (etcd.settled).
//   - No stream leaves its history before the gaps of all are queued (Streams.acting).
//   - A stream that is opened later asks whether it was in that etcd (earlier.go).

// Reversed implements reflector.History.
func (c *Stream) Reversed(ctx context.Context, resourceVersion string) (string, error) {
	if err := c.all.identity.Check(ctx); err != nil {
		return "", err
	}
	position, err := strconv.ParseUint(cmp.Or(resourceVersion, lastPosition(c)), 10, 64)
	if err != nil {
		return "", nil //nolint:nilerr // nothing is recorded, or opaque versions cannot be compared
	}
	if proof := c.RollbackProof(); proof != "" {
		return proof, nil
	}
	if proof, err := matchPastRollbacks(ctx, c); proof != "" || err != nil {
		return proof, err
	}
	if err := verify(ctx, c, position); err != nil {
		return "", err
	}
	return c.RollbackProof(), nil
}

// reachedTo is where the stream is or, where a list is due whatever the history is, was. It is empty where that was nowhere, or
// in a history that is no more.
func lastPosition(c *Stream) string {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.progress.position == 0 || c.history.rolledBack {
		return ""
	}
	return strconv.FormatUint(c.progress.position, 10)
}

// LeftFor is the proof for which the stream has left a history and was not listed since, empty if it has not. It waits until
// the gaps of all streams are queued.
func (c *Stream) RollbackProof() (proof string) {
	c.all.acting.RLock()
	defer c.all.acting.RUnlock()
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.history.rolledBack {
		proof = c.history.proof
	}
	return proof
}

// Gap is where the gap of a stream begins that has left a history.
type Gap struct {
	Stream *Stream
	Begin  deltafifo.Begin
}

// GapBegin is where the gap begins of a stream that has left its history, zero for any other. What it has put on record together with others
// says it already.
func (c *Stream) GapBegin() deltafifo.Begin {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.history.rolledBack {
		return deltafifo.Begin{}
	}
	return c.history.gap
}

// found acts upon the proof that the stream's history is no more. All streams leave it that are not proved to be in another
// etcd: those that may be in this one would miss what it has lost.
func (c *Stream) rollBack(ctx context.Context, e evidence) error {
	event := &event{evidence: e, finder: c, otherEtcds: findOtherEtcds(ctx, c), forks: map[*etcd]*fork{}}
	c.all.acting.Lock()
	defer c.all.acting.Unlock()
	c.all.mu.Lock()
	affected, gaps := event.rollBackLocked()
	c.all.mu.Unlock()
	if len(affected) == 0 {
		return nil
	}
	err := c.all.record(ctx, e.proof, gaps)
	c.all.noteGapsQueued()
	for _, o := range affected { // After an error each opens its own gap.
		notify(o, e.proof)
	}
	if err != nil {
		return fmt.Errorf("record that history went backwards: %w", err)
	}
	return nil
}

// part notes that the gaps of a rollback are queued. What is observed later goes on record after them.
func (r *Streams) noteGapsQueued() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gapsQueued = r.now()
}

// tell has the reflector of the stream list.
func notify(c *Stream, proof string) {
	c.all.mu.Lock()
	notify := c.following.notify
	c.all.mu.Unlock()
	if notify != nil {
		notify(proof)
	}
}

// event is one rollback.
type event struct {
	evidence
	finder     *Stream
	otherEtcds map[*etcd]bool  // the etcds that are proved to be others than that of the finder
	forks      map[*etcd]*fork // where the old history and the new one of the others have parted
}

// leaveLocked makes the streams leave. It gives those that did, and the gaps of those that are followed. Any other has its gap
// when it is followed again.
func (e *event) rollBackLocked() (affected []*Stream, gaps []Gap) {
	all := e.finder.all
	if !e.finder.history.isCurrent(e.history) { // Another stream has found it, or a list has shown it meanwhile.
		return nil, nil
	}
	all.rollbacks = append(all.rollbacks, pastRollback{proof: e.proof, finder: e.finder})
	last := e.finder.progress.completeLocked(e.finder.etcd, &e.evidence, nil).Time
	for _, o := range all.streams {
		if o.history.rolledBack || e.otherEtcds[o.etcd] || o.progress.position == 0 && o.following.notify != nil && !o.listing.open {
			continue
		}
		affected = append(affected, o)
		e.beginGapLocked(o, last)
		if o.following.notify != nil && o.progress.position != 0 {
			gaps = append(gaps, Gap{Stream: o, Begin: o.history.gap})
		}
	}
	for _, o := range affected {
		o.rollBackLocked(e.proof, newCacheCheckLocked(o, e.forks[o.etcd]))
	}
	for etcd := range e.forks {
		etcd.resetLocked()
	}
	e.finder.trust.undone = e.undone
	return affected, gaps
}

// partLocked notes up to where a stream that leaves was complete, and what its etcd has served for the search of the fork.
func (e *event) beginGapLocked(o *Stream, last time.Time) {
	proved := o.etcd == e.finder.etcd
	if e.forks[o.etcd] == nil {
		e.forks[o.etcd] = newFork(o.etcd.ring, e.evidence, proved)
	}
	if proved {
		o.history.gap, o.trust.finder = o.progress.completeLocked(o.etcd, &e.evidence, nil), nil
	} else {
		o.history.gap, o.trust.finder = o.progress.completeLocked(o.etcd, &e.evidence, &last), e.finder
	}
}

// leaveLocked notes that the stream was in a history that is no more.
func (c *Stream) rollBackLocked(proof string, check *cacheCheck) {
	c.history.rollBack(proof)
	c.trust.rolledBackLocked(check)
	c.all.forgetLocked(c)
}

// forgetLocked drops what a stream knew in a history that is no more. All claims go: whose they are in the new one is not known.
func (r *Streams) forgetLocked(c *Stream) {
	for _, other := range r.streams {
		other.claims.newest = nil
	}
	c.claims.count, c.progress.position, c.living, c.samples = 0, 0, nil, streamSamples{}
}

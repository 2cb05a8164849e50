package rollback

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
)

// A rollback is one event: an etcd was put back to an older state. One entry of the queue opens the gaps of all
// streams that are not proved to be in another etcd, in one transaction.
//
// The package guarantees:
//
//   - Each lost version lies in a gap. A gap may begin too early.
//   - A gap begins at the newest version that etcd was seen to hold (etcdState.settled). If there is none, it begins
//     where this process began the stream, or at older evidence. The queue never lets it begin after the stream's
//     position.
//   - No stream is rolled back before the gaps of all streams are queued (Streams.acting).
//   - A stream that is opened later asks whether it was in that etcd (pastrollbacks.go).

// CheckRollback implements reflector.History. It returns the proof of a rollback, "" if nothing proves one.
func (c *Stream) CheckRollback(ctx context.Context, resourceVersion string) (string, error) {
	if err := c.all.identity.Check(ctx); err != nil {
		return "", err
	}
	position, err := strconv.ParseUint(cmp.Or(resourceVersion, lastPosition(c)), 10, 64)
	if err != nil {
		return "", nil //nolint:nilerr // nothing is recorded, or the versions are opaque and cannot be compared
	}
	if proof := c.RollbackProof(); proof != "" {
		return proof, nil
	}
	if proof, err := matchPastRollbacks(ctx, c); proof != "" || err != nil {
		return proof, err
	}
	if err := checkNewest(ctx, c, position); err != nil {
		return "", err
	}
	return c.RollbackProof(), nil
}

// lastPosition returns the stream's position. CheckRollback uses it if the reflector gives none: the store has nothing,
// or a list after a rollback is due. It is empty if the stream has none, or was rolled back.
func lastPosition(c *Stream) string {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.progress.position == 0 || c.history.rolledBack {
		return ""
	}
	return strconv.FormatUint(c.progress.position, 10)
}

// RollbackProof returns the proof for which the stream was rolled back and not listed since. It is empty if there
// is none. RollbackProof waits until the gaps of all streams are queued.
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

// GapBegin returns where the gap of a rolled back stream begins, and the zero value for any other stream. If the
// event has queued the gap already, that one begins there, too.
func (c *Stream) GapBegin() deltafifo.Begin {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.history.rolledBack {
		return deltafifo.Begin{}
	}
	return c.history.gap
}

// rollBack acts on the evidence that the stream's history is no more. It rolls back all streams that are not proved
// to be in another etcd: one that may be in this etcd would miss what this etcd has lost.
func (c *Stream) rollBack(ctx context.Context, e evidence) error {
	found := &event{evidence: e, finder: c, otherEtcds: findOtherEtcds(ctx, c), forks: map[*etcdState]*fork{}}
	c.all.acting.Lock()
	defer c.all.acting.Unlock()
	c.all.mu.Lock()
	affected, gaps := found.rollBackLocked()
	c.all.mu.Unlock()
	if len(affected) == 0 {
		return nil
	}
	err := c.all.queueGaps(ctx, e.proof, gaps)
	c.all.noteGapsQueued()
	for _, o := range affected { // If the entry was not queued, each stream opens its own gap.
		notifyReflector(o, e.proof)
	}
	if err != nil {
		return fmt.Errorf("queue the gaps of a rollback: %w", err)
	}
	return nil
}

// noteGapsQueued notes that the gaps of a rollback are queued, or that each stream opens its own. An entry that is
// observed later goes on record after them.
func (r *Streams) noteGapsQueued() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gapsQueuedAt = r.now()
}

// notifyReflector makes the reflector of the stream list.
func notifyReflector(c *Stream, proof string) {
	c.all.mu.Lock()
	onRollback := c.following.onRollback
	c.all.mu.Unlock()
	if onRollback != nil {
		onRollback(proof)
	}
}

// event is one rollback.
type event struct {
	evidence
	finder     *Stream
	otherEtcds map[*etcdState]bool  // the etcds that are proved to be others than the finder's
	forks      map[*etcdState]*fork // the fork of each etcd that it concerns
}

// rollBackLocked rolls the streams back, and returns them. It also returns the gaps of the followed streams. Any
// other stream opens its gap when it is followed again.
func (e *event) rollBackLocked() (affected []*Stream, gaps []Gap) {
	all := e.finder.all
	if !e.finder.history.isCurrent(e.historyNumber) { // Another stream, or a list, has found the rollback first.
		return nil, nil
	}
	all.rollbacks = append(all.rollbacks, pastRollback{proof: e.proof, finder: e.finder})
	latestBegin := e.finder.progress.completeLocked(e.finder.etcd, &e.evidence, nil).Time
	for _, o := range all.streams {
		if o.history.rolledBack || e.otherEtcds[o.etcd] || hasNothingLocked(o) {
			continue
		}
		affected = append(affected, o)
		e.beginGapLocked(o, latestBegin)
		if o.following.onRollback != nil && o.progress.position != 0 {
			gaps = append(gaps, Gap{Stream: o, Begin: o.history.gap})
		}
	}
	for _, o := range affected {
		o.rollBackLocked(e.proof, newCacheCheckLocked(o, e.forks[o.etcd]))
	}
	all.dropClaimsLocked()
	for etcd := range e.forks {
		etcd.resetLocked()
	}
	e.finder.trust.lostVersion = e.lostVersion
	return affected, gaps
}

// hasNothingLocked reports whether the stream is followed and has no version yet. A stream in the middle of its first
// list has some: the list may be of the old history.
func hasNothingLocked(c *Stream) bool {
	return c.progress.position == 0 && c.following.onRollback != nil && !c.listing.open
}

// beginGapLocked notes where the gap of a stream begins, and keeps the history ring of its etcd for the search of
// the fork.
func (e *event) beginGapLocked(o *Stream, latestBegin time.Time) {
	proved := o.etcd == e.finder.etcd
	if e.forks[o.etcd] == nil {
		e.forks[o.etcd] = newFork(o.etcd.ring, e.evidence, proved)
	}
	if proved {
		o.history.gap, o.trust.finder = o.progress.completeLocked(o.etcd, &e.evidence, nil), nil
	} else {
		o.history.gap, o.trust.finder = o.progress.completeLocked(o.etcd, &e.evidence, &latestBegin), e.finder
	}
}

// rollBackLocked notes that the stream's history is no more.
func (c *Stream) rollBackLocked(proof string, check *cacheCheck) {
	c.history.rollBack(proof)
	c.trust.rolledBackLocked(check)
	c.forgetLocked()
}

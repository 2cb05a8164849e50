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

// confirmAfter is how long what a watch is about to say may take: several deletes can share a revision.
const confirmAfter = time.Second

// evidence is what proves that a history is no more; proof is empty if nothing does.
type evidence struct {
	proof  string
	undone witness // what was served and is not in etcd
	at     uint64  // a revision of the old history that is in no other
	served bool    // the same was served to this process
	// before is when that was, by the clock of the record; zero if that is not known.
	before time.Time
	// history is the number of that, among those of the stream.
	history int
}

// Reversed implements reflector.History.
func (c *Stream) Reversed(ctx context.Context, resourceVersion string) (string, error) {
	if err := c.all.identity.Check(ctx); err != nil {
		return "", err
	}
	position, err := strconv.ParseUint(cmp.Or(resourceVersion, c.reachedTo()), 10, 64)
	if err != nil {
		return "", nil //nolint:nilerr // nothing is recorded, or opaque versions cannot be compared
	}
	if proof := c.LeftFor(); proof != "" {
		return proof, nil
	}
	if proof, err := c.learnOfEarlier(ctx); proof != "" || err != nil {
		return proof, err
	}
	if err := c.verify(ctx, position); err != nil {
		return "", err
	}
	return c.LeftFor(), nil
}

// verify compares the newest living object of the stream with etcd, at the stream's position.
func (c *Stream) verify(ctx context.Context, position uint64) error {
	e, err := c.compare(ctx, position)
	if e.proof == "" || err != nil {
		return err
	}
	return c.found(ctx, e)
}

func (c *Stream) compare(ctx context.Context, position uint64) (evidence, error) {
	var doubted witness
	for {
		w, at, history := c.expected()
		if at == 0 {
			at = position
		}
		what, err := c.ask.look(ctx, w, at)
		if err == nil && what == unknown {
			what, err = c.ask.lookNow(ctx, w)
		}
		switch {
		case err != nil:
			return evidence{}, err
		case what == ahead:
			return evidence{fmt.Sprintf("%s was recorded up to resource version %d, which etcd has not come to", c.ask.name, at), w, at, c.servedHere(at), c.movedTo(at), history}, nil
		case what == other && w.name == "", what == same, what == unknown:
			return c.compareFurther(ctx, at, position, history)
		case w.name == doubted.name && w.namespace == doubted.namespace && w.revision == doubted.revision:
			proof := fmt.Sprintf("%s %s/%s was recorded with resource version %d, and was something else in etcd at %d", c.ask.name, w.namespace, w.name, w.revision, at)
			return evidence{proof, w, w.revision, c.servedHere(w.revision), c.all.recordedIf(w.at), history}, nil
		}
		doubted = w
		timer := time.NewTimer(confirmAfter)
		select {
		case <-ctx.Done():
			timer.Stop()
			return evidence{}, ctx.Err()
		case <-timer.C:
		}
	}
}

// servedHere reports whether a revision was served to this process. If not, it comes from the record.
func (c *Stream) servedHere(revision uint64) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return revision > max(c.resumed, c.recorded)
}

// movedTo is when the stream has come to its position, by the clock of the record. It is zero for any other revision, and for the
// position on record.
func (c *Stream) movedTo(revision uint64) (at time.Time) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if revision == c.position && revision > c.resumed {
		at = c.all.recordedIf(c.moved)
	}
	return at
}

// recordedIf is a moment by the clock of the record, zero if it is not known.
func (r *Streams) recordedIf(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return r.recordedAt(at)
}

// compareFurther asks whether etcd has come to a position beyond that of the record: that of a spool.
func (c *Stream) compareFurther(ctx context.Context, at, position uint64, history int) (e evidence, err error) {
	if position <= at {
		return e, nil
	}
	what, err := c.ask.look(ctx, witness{}, position)
	if what == ahead {
		e = evidence{proof: fmt.Sprintf("%s was followed up to resource version %d, which etcd has not come to", c.ask.name, position), at: position, history: history}
	}
	return e, err
}

// expected is the newest living object, the revision at which it was certainly the newest version, and the number of the
// history.
func (c *Stream) expected() (w witness, at uint64, history int) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	w = c.living.newest()
	return w, max(c.position, w.revision), c.history
}

// LeftFor is the proof for which the stream has left a history and was not listed since, empty if it has not. It waits until
// the gaps of all streams are queued.
func (c *Stream) LeftFor() (proof string) {
	c.all.acting.RLock()
	defer c.all.acting.RUnlock()
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.reversed {
		proof = c.proof
	}
	return proof
}

// isInLocked reports whether the stream is still in the history of that number.
func (c *Stream) isInLocked(history int) bool { return !c.reversed && c.history == history }

// Gap is where the gap of a stream begins that has left a history.
type Gap struct {
	Of    *Stream
	Until deltafifo.Until // up to where it is complete
}

// found acts upon the proof that the stream's history is no more. All streams leave it that are not proved to be in another
// etcd: those that may be in this one would miss what it has lost.
func (c *Stream) found(ctx context.Context, e evidence) error {
	elsewhere := c.all.elsewhere(ctx, c)
	c.all.acting.Lock()
	defer c.all.acting.Unlock()
	gaps, left := c.leaveTogether(e, elsewhere)
	if len(left) == 0 {
		return nil
	}
	err := c.all.record(ctx, e.proof, gaps)
	for _, o := range left { // After an error each opens its own gap.
		o.tell(e.proof)
	}
	if err != nil {
		return fmt.Errorf("record that history went backwards: %w", err)
	}
	return nil
}

// leaveTogether makes the streams leave. It gives those that did, and the gaps of those that are followed. Any other has its
// gap when it is followed again.
func (c *Stream) leaveTogether(e evidence, elsewhere map[*etcd]bool) (gaps []Gap, left []*Stream) {
	r := c.all
	r.mu.Lock()
	defer r.mu.Unlock()
	if !c.isInLocked(e.history) { // Another stream has found it, or a list has shown it meanwhile.
		return nil, nil
	}
	r.rollbacks = append(r.rollbacks, earlier{proof: e.proof, finder: c})
	forks := map[*etcd]*fork{}
	last := c.completeLocked(&e, nil).Time
	for _, o := range r.streams {
		if o.reversed || elsewhere[o.etcd] || o.position == 0 && o.reverse != nil && !o.lists {
			continue
		}
		if forks[o.etcd] == nil {
			forks[o.etcd] = forkOf(o.etcd.trail, e, o.etcd == c.etcd)
		}
		o.until, o.trust.stranger = o.completeLocked(&e, nil), nil
		if o.etcd != c.etcd {
			o.until, o.trust.stranger = o.completeLocked(&e, &last), c
		}
		if o.reverse != nil && o.position != 0 {
			gaps = append(gaps, Gap{Of: o, Until: o.until})
		}
		left = append(left, o)
	}
	for _, o := range left {
		o.leaveLocked(e.proof, o.doubtLocked(forks[o.etcd]))
	}
	for etcd := range forks {
		etcd.leaveLocked()
	}
	c.trust.undone = e.undone
	return gaps, left
}

// leaveLocked notes that the stream was in a history that is no more.
func (c *Stream) leaveLocked(proof string, d *doubt) {
	c.reversed, c.proof, c.earlier = true, proof, nil
	c.trust.leftLocked(d)
	c.history++
	c.forgetLocked()
}

// tell has the reflector of the stream list.
func (c *Stream) tell(proof string) {
	c.all.mu.Lock()
	reverse := c.reverse
	c.all.mu.Unlock()
	if reverse != nil {
		reverse(proof)
	}
}

// forgetLocked drops what was known in a history that is no more. All claims go: whose they are in the new one is not known.
func (c *Stream) forgetLocked() {
	for _, other := range c.all.streams {
		other.newest = nil
	}
	c.claimed, c.position, c.living = 0, 0, nil
	c.fresh, c.due, c.paused = samples{}, samples{}, samples{}
}

// elsewhere finds the etcds that are proved to be others than that of a stream. It asks all at once, because the server may
// hang for many.
func (r *Streams) elsewhere(ctx context.Context, c *Stream) map[*etcd]bool {
	r.mu.Lock()
	asked := map[*etcd]*Stream{}
	for _, o := range r.streams {
		if o.etcd != c.etcd && o.asksLocked() && asked[o.etcd] == nil {
			asked[o.etcd] = o
		}
	}
	r.mu.Unlock()
	return apart(ctx, c, asked)
}

// completeLocked is up to where, and since when, the stream is complete, as far as is certain when its etcd was put back. What was
// served before something of the old history is of no other. A recorder before this one may have been served that. If the etcd of the stream is not
// known to be that one, it was complete no longer than to last (I4).
func (c *Stream) completeLocked(e *evidence, last *time.Time) deltafifo.Until {
	from := deltafifo.Until{Time: c.since}
	if c.begin != 0 {
		from.ResourceVersion = strconv.FormatUint(c.begin, 10)
	}
	from = c.etcd.heldSinceLocked(from, e.before)
	if last == nil && !e.before.IsZero() && e.before.Before(from.Time) {
		from = deltafifo.Until{ResourceVersion: strconv.FormatUint(e.at, 10), Time: e.before}
	}
	if last != nil && !last.IsZero() && last.Before(from.Time) {
		from.Time = *last
	}
	return from
}

// ServedUntil is up to where, and when, the stream was complete when it left. What it has put on record together with others
// says it already.
func (c *Stream) ServedUntil() deltafifo.Until {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.reversed {
		return deltafifo.Until{}
	}
	return c.until
}

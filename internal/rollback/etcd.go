package rollback

import (
	"slices"
	"strconv"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/times"
)

// etcd is what is known of one etcd, from all streams that are known to be in it. A stream that nobody knows another beside has
// one of its own. Streams.mu protects it.
type etcd struct {
	grouped        bool           // it was looked which streams are in it
	kept           time.Duration  // how much history it keeps
	last           sample         // the newest that was served of it
	servedAt       time.Time      // when something was
	settled        []sample       // versions that it was seen to hold for certain, in order
	settling       sample         // one that may be the next
	verified       time.Time      // the newest version before then was found in it, by the clock of the record; zero before the first time
	lastGlanced    observationKey // which version was the newest when it was last asked for that one alone
	ring           historyRing
	commonList     uint64    // where the first list from a new cache was after a rollback, 0 before that
	commonListTime time.Time // when that was
}

const (
	// settledAfter is how much longer than a version an etcd must have been there before a gap may begin at that version. The
	// caches of an API server do not hear of everything at once: by then each has what comes before it.
	settledAfter = 5 * time.Second
	// keptSettled bounds the versions that an etcd is known to have held, for some ten minutes: one settles each settledAfter.
	keptSettled = 128
	// silence is how long, at least, an etcd that is put back serves nothing: it has to be stopped, and started again.
	servingPause = time.Second / 2
)

// takeInLocked takes in what is known of an etcd that has turned out to be this one.
func (e *etcd) mergeLocked(other *etcd) {
	e.ring.merge(other.ring)
	if o := other.last; o.stream != nil && o.isCurrentLocked() && (o.checkRevision() > e.last.checkRevision() || !e.last.isCurrentLocked()) {
		e.last = o
	}
	if other.servedAt.After(e.servedAt) {
		e.servedAt = other.servedAt
	}
	settled := slices.DeleteFunc(append(e.settled, other.settled...), func(s sample) bool { return !s.isCurrentLocked() })
	slices.SortFunc(settled, func(a, b sample) int { return a.recordTime.Compare(b.recordTime) })
	e.settled = slices.Delete(settled, 0, max(0, len(settled)-keptSettled))
	if e.commonList == 0 {
		e.commonList, e.commonListTime = other.commonList, other.commonListTime
	}
	e.verified = times.Earlier(e.verified, other.verified)
}

// servedLocked notes that a version was served now. If nothing was for as long as a restore takes, it gives the newest version
// before that. That one has to be looked at, whatever is served next. What is lost may have been served for a moment only,
// among much else.
func (e *etcd) servedLocked(o observation) (before *sample) {
	if e.last.stream != nil && o.at.Sub(e.servedAt) >= servingPause {
		before = e.lastLocked()
		before.beforePause = true
	}
	// A stream that catches up is served what is older than what others were.
	if before != nil || e.last.stream == nil || o.revision > e.last.checkRevision() || !e.last.isCurrentLocked() {
		e.last = sample{observation: o}
	}
	e.servedAt = o.at
	return before
}

// listedLocked notes the newest version of a list, if nothing was served yet. In a quiet etcd no other may tell of the history. It
// takes the place of no version that was served: that one has to be looked at after a silence.
func (e *etcd) listedLocked(s *sample) {
	if s.name != "" && (e.last.stream == nil || !e.last.isCurrentLocked()) {
		e.last, e.servedAt = sample{observation: s.observation, listed: s.listed}, s.at
	}
}

// lastLocked is the newest that was served.
func (e *etcd) lastLocked() *sample {
	last := e.last
	last.recordTime = last.stream.all.recordTimeOf(last.at)
	return &last
}

// newestLocked is the newest that was served, nil if the server cannot be asked for it. It need not wait for an answer: the next
// probe has it again.
func (e *etcd) newestLocked() *sample {
	if last := e.last; last.stream == nil || !last.stream.canProveLocked() || !last.isCurrentLocked() {
		return nil
	}
	newest := e.lastLocked()
	newest.pending = true
	return newest
}

// holdsLocked notes that it was seen to hold a sample. A gap may begin there if the same is found of a later version after
// settledAfter: then it was not put back meanwhile.
func (e *etcd) noteHeldLocked(s *sample, now time.Time) {
	switch {
	case s.recalled || !s.isCurrentLocked():
	case e.settling.stream == nil || !e.settling.isCurrentLocked():
		e.settling = s.withoutDoc()
	case s.checkRevision() >= e.settling.checkRevision() && now.Sub(e.settling.at) >= settledAfter:
		e.settled = append(e.settled, e.settling)
		e.settled = slices.Delete(e.settled, 0, max(0, len(e.settled)-keptSettled))
		e.settling = s.withoutDoc()
	}
}

// heldSinceLocked is the newest version that it was seen to hold for certain, if that is newer than from, and settled before
// something else.
func (e *etcd) newestSettledLocked(from deltafifo.Begin, before time.Time) deltafifo.Begin {
	for _, v := range e.settled {
		if v.recordTime.After(from.Time) && v.recordTime.Add(settledAfter).Before(before) {
			from = deltafifo.Begin{ResourceVersion: strconv.FormatUint(v.checkRevision(), 10), Time: v.recordTime}
		}
	}
	return from
}

// leaveLocked drops what was known of a history that is no more.
func (e *etcd) resetLocked() {
	e.ring.clear()
	e.settled, e.settling, e.commonList = nil, sample{}, 0
}

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
	tied     bool          // it was looked which streams are in it
	kept     time.Duration // how much history it keeps
	last     sample        // the newest that was served of it
	heard    time.Time     // when something was
	settled  []sample      // versions that it was seen to hold for certain, in order
	settling sample        // one that may be the next
	verified time.Time     // the newest version before then was found in it, by the clock of the record; zero before the first time
	glanced  step          // which version was the newest when it was last asked for that one alone
	trail    trail
	base     uint64    // where the first list from a new cache was after a rollback, 0 before that
	based    time.Time // when that was
}

const (
	// settledAfter is how much longer than a version an etcd must have been there before a gap may begin at that version. The
	// caches of an API server do not hear of everything at once: by then each has what comes before it.
	settledAfter = 5 * time.Second
	// keptSettled bounds the versions that an etcd is known to have held, for some ten minutes: one settles each settledAfter.
	keptSettled = 128
	// silence is how long, at least, an etcd that is put back serves nothing: it has to be stopped, and started again.
	silence = time.Second / 2
)

// takeInLocked takes in what is known of an etcd that has turned out to be this one.
func (e *etcd) takeInLocked(other *etcd) {
	e.trail.mix(other.trail)
	if o := other.last; o.of != nil && o.standsLocked() && (o.asOf() > e.last.asOf() || !e.last.standsLocked()) {
		e.last = o
	}
	if other.heard.After(e.heard) {
		e.heard = other.heard
	}
	settled := slices.DeleteFunc(append(e.settled, other.settled...), func(s sample) bool { return !s.standsLocked() })
	slices.SortFunc(settled, func(a, b sample) int { return a.recorded.Compare(b.recorded) })
	e.settled = slices.Delete(settled, 0, max(0, len(settled)-keptSettled))
	if e.base == 0 {
		e.base, e.based = other.base, other.based
	}
	e.verified = times.Earlier(e.verified, other.verified)
}

// servedLocked notes that a version was served now. If nothing was for as long as a restore takes, it gives the newest version
// before that. That one has to be looked at, whatever is served next. What is lost may have been served for a moment only,
// among much else.
func (e *etcd) servedLocked(f footprint) (before *sample) {
	if e.last.of != nil && f.at.Sub(e.heard) >= silence {
		before = e.lastLocked()
		before.paused = true
	}
	// A stream that catches up is served what is older than what others were.
	if before != nil || e.last.of == nil || f.revision > e.last.asOf() || !e.last.standsLocked() {
		e.last = sample{footprint: f}
	}
	e.heard = f.at
	return before
}

// listedLocked notes the newest version of a list, if nothing was served yet. In a quiet etcd no other may tell of the history. It
// takes the place of no version that was served: that one has to be looked at after a silence.
func (e *etcd) listedLocked(s *sample) {
	if s.name != "" && (e.last.of == nil || !e.last.standsLocked()) {
		e.last, e.heard = sample{footprint: s.footprint, listed: s.listed}, s.at
	}
}

// lastLocked is the newest that was served.
func (e *etcd) lastLocked() *sample {
	last := e.last
	last.recorded = last.of.all.recordedAt(last.at)
	return &last
}

// newestLocked is the newest that was served, nil if the server cannot be asked for it. It need not wait for an answer: the next
// probe has it again.
func (e *etcd) newestLocked() *sample {
	if last := e.last; last.of == nil || !last.of.provesLocked() || !last.standsLocked() {
		return nil
	}
	newest := e.lastLocked()
	newest.due = true
	return newest
}

// holdsLocked notes that it was seen to hold a sample. A gap may begin there if the same is found of a later version after
// settledAfter: then it was not put back meanwhile.
func (e *etcd) holdsLocked(s *sample, now time.Time) {
	switch {
	case s.recalled || !s.standsLocked():
	case e.settling.of == nil || !e.settling.standsLocked():
		e.settling = s.bare()
	case s.asOf() >= e.settling.asOf() && now.Sub(e.settling.at) >= settledAfter:
		e.settled = append(e.settled, e.settling)
		e.settled = slices.Delete(e.settled, 0, max(0, len(e.settled)-keptSettled))
		e.settling = s.bare()
	}
}

// heldSinceLocked is the newest version that it was seen to hold for certain, if that is newer than from, and settled before
// something else.
func (e *etcd) heldSinceLocked(from deltafifo.Begin, before time.Time) deltafifo.Begin {
	for _, v := range e.settled {
		if v.recorded.After(from.Time) && v.recorded.Add(settledAfter).Before(before) {
			from = deltafifo.Begin{ResourceVersion: strconv.FormatUint(v.asOf(), 10), Time: v.recorded}
		}
	}
	return from
}

// leaveLocked drops what was known of a history that is no more.
func (e *etcd) leaveLocked() {
	e.trail.forget()
	e.settled, e.settling, e.base = nil, sample{}, 0
}

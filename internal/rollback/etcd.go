package rollback

import (
	"slices"
	"strconv"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/times"
)

// etcdState is what the recorder knows of one etcd, from all streams that are known to be in it. As long as no other
// stream is known to share its etcd, a stream has a value of its own. Streams.mu protects it.
type etcdState struct {
	grouped            bool           // the grouping has looked which streams are in it
	keptHistory        time.Duration  // how much history it keeps, by Measure
	newest             sample         // the newest version that its streams were served
	servedAt           time.Time      // when a stream was last served a version of a living object
	settled            []sample       // versions that it certainly held, in order
	nextSettled        sample         // a version that settles if etcd still holds it, or a later one, settledAfter later
	verifiedUntil      time.Time      // up to then its newest version was checked, by the record's clock; zero before the first probe
	lastGlanced        observationKey // the version that the last glance checked
	ring               historyRing
	commonListRevision uint64    // the resource version of the first list from a new cache after a rollback, 0 if there was none
	commonListAt       time.Time // when that list was made
}

const (
	// settledAfter is how long after a version etcd must still be there before a gap may begin at that version. The
	// caches of an API server do not learn of all writes at once. After that time, each cache has what comes before
	// the version.
	settledAfter = 5 * time.Second
	// keptSettled bounds the settled versions of an etcd. One settles each settledAfter, so they cover some ten
	// minutes.
	keptSettled = 128
	// servingPause is how long, at least, the streams of an etcd that is put back are served nothing: the operator
	// has to stop etcd and start it again.
	servingPause = time.Second / 2
)

// mergeLocked adds what is known of another value that has turned out to be the same etcd.
func (e *etcdState) mergeLocked(other *etcdState) {
	e.ring.merge(other.ring)
	if o := other.newest; o.stream != nil && o.isCurrentLocked() && (o.checkRevision() > e.newest.checkRevision() || !e.newest.isCurrentLocked()) {
		e.newest = o
	}
	if other.servedAt.After(e.servedAt) {
		e.servedAt = other.servedAt
	}
	settled := slices.DeleteFunc(append(e.settled, other.settled...), func(s sample) bool { return !s.isCurrentLocked() })
	slices.SortFunc(settled, func(a, b sample) int { return a.recordTime.Compare(b.recordTime) })
	e.settled = slices.Delete(settled, 0, max(0, len(settled)-keptSettled))
	if e.commonListRevision == 0 {
		e.commonListRevision, e.commonListAt = other.commonListRevision, other.commonListAt
	}
	e.verifiedUntil = times.Earlier(e.verifiedUntil, other.verifiedUntil)
}

// servedLocked notes that a version was served now. After a pause as long as a rollback takes, it returns the newest
// version before the pause. That version must be checked, whatever is served next: a lost version may have been
// served for a moment only, among many others.
func (e *etcdState) servedLocked(o observation) (before *sample) {
	if e.newest.stream != nil && o.at.Sub(e.servedAt) >= servingPause {
		before = e.newestSampleLocked()
		before.beforePause = true
	}
	// A stream that catches up is served older versions than the other streams were.
	if before != nil || e.newest.stream == nil || o.revision > e.newest.checkRevision() || !e.newest.isCurrentLocked() {
		e.newest = sample{observation: o}
	}
	e.servedAt = o.at
	return before
}

// listedLocked notes the newest version of a list if nothing was served yet. In a quiet etcd, no other version may
// show the history. It never replaces a served version of the present history: that
// one must be checked after a pause.
func (e *etcdState) listedLocked(s *sample) {
	if s.name != "" && (e.newest.stream == nil || !e.newest.isCurrentLocked()) {
		e.newest, e.servedAt = sample{observation: s.observation, listedRevision: s.listedRevision}, s.at
	}
}

// newestSampleLocked returns the newest version that was served, as a sample.
func (e *etcdState) newestSampleLocked() *sample {
	newest := e.newest
	newest.recordTime = newest.stream.all.recordTimeOf(newest.at)
	return &newest
}

// newestToCheckLocked returns the newest version that was served, nil if it cannot be checked. pending is set so that
// retry does not queue it a second time: the next probe has it again.
func (e *etcdState) newestToCheckLocked() *sample {
	if newest := e.newest; newest.stream == nil || !newest.stream.canProveLocked() || !newest.isCurrentLocked() {
		return nil
	}
	newest := e.newestSampleLocked()
	newest.pending = true
	return newest
}

// noteHeldLocked notes that etcd held a sample. A gap may begin there if etcd holds it, or a later version,
// settledAfter later: then etcd was not put back in between.
func (e *etcdState) noteHeldLocked(s *sample, now time.Time) {
	switch {
	case s.recalled || !s.isCurrentLocked():
	case e.nextSettled.stream == nil || !e.nextSettled.isCurrentLocked():
		e.nextSettled = s.withoutDoc()
	case s.checkRevision() >= e.nextSettled.checkRevision() && now.Sub(e.nextSettled.at) >= settledAfter:
		e.settled = append(e.settled, e.nextSettled)
		e.settled = slices.Delete(e.settled, 0, max(0, len(e.settled)-keptSettled))
		e.nextSettled = s.withoutDoc()
	}
}

// newestSettledLocked returns the newest settled version that is newer than from, and settled before the given
// time. If there is none, it returns from.
func (e *etcdState) newestSettledLocked(from deltafifo.Begin, before time.Time) deltafifo.Begin {
	for _, v := range e.settled {
		if v.recordTime.After(from.Time) && v.recordTime.Add(settledAfter).Before(before) {
			from = deltafifo.Begin{ResourceVersion: strconv.FormatUint(v.checkRevision(), 10), Time: v.recordTime}
		}
	}
	return from
}

// resetLocked drops what was known of a history that is no more.
func (e *etcdState) resetLocked() {
	e.ring.clear()
	e.settled, e.nextSettled, e.commonListRevision = nil, sample{}, 0
}

package rollback

import (
	"strconv"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
)

// place is how far a stream has come in its history. Streams.mu protects it.
type progress struct {
	position uint64    // up to which the stream has said what is its
	moved    time.Time // when it last came further
	begin    uint64    // where it began in its history, for this process; 0 until that is known
	since    time.Time // when that was, by the clock of the record
	resumed  uint64    // where this process has taken over from the record
	onRecord uint64    // the newest revision that comes from the record; the position may be behind it
}

// reach notes a position.
func (p *progress) reach(position uint64, now time.Time) {
	if position > p.position {
		p.position, p.moved = position, now
	}
	if p.begin == 0 {
		p.begin = position
	}
}

// resume takes over from the record.
func (p *progress) resume(position uint64, since time.Time) {
	p.position, p.resumed, p.begin, p.since = position, position, position, since
}

// recall notes a revision on record.
func (p *progress) recall(revision uint64) { p.onRecord = max(p.onRecord, revision) }

// listed notes that a list is complete that began at some time. It is anew if it is one after a history that is no more.
func (p *progress) listed(began time.Time, afterRollback bool) {
	if afterRollback {
		p.onRecord, p.resumed = 0, 0 // The record is of the other history.
	}
	if afterRollback || p.since.IsZero() {
		p.begin, p.since = 0, began
	}
}

// servedHere reports whether a revision was served to this process. If not, it comes from the record.
func (p *progress) servedHere(revision uint64) bool { return revision > max(p.resumed, p.onRecord) }

// movedTo is when the stream has come to its position. It is zero for any other revision, and for the position on record.
func (p *progress) movedTo(revision uint64) (at time.Time) {
	if revision == p.position && revision > p.resumed {
		at = p.moved
	}
	return at
}

// completeLocked is up to where, and since when, a stream is complete, as far as is certain when its etcd was put back. What was
// served before something of the old history is of no other. A recorder before this one may have been served that. If the etcd
// of the stream is not known to be that one, it was complete no longer than to last (I4).
func (p *progress) completeLocked(in *etcd, e *evidence, last *time.Time) deltafifo.Begin {
	from := deltafifo.Begin{Time: p.since}
	if p.begin != 0 {
		from.ResourceVersion = strconv.FormatUint(p.begin, 10)
	}
	from = in.newestSettledLocked(from, e.before)
	if last == nil && !e.before.IsZero() && e.before.Before(from.Time) {
		from = deltafifo.Begin{ResourceVersion: strconv.FormatUint(e.at, 10), Time: e.before}
	}
	if last != nil && !last.IsZero() && last.Before(from.Time) {
		from.Time = *last
	}
	return from
}

// known is the newest revision that is known to have been the stream's, on record or not.
func (p *progress) newestKnown() uint64 { return max(p.position, p.onRecord) }

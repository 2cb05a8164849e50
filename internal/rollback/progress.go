package rollback

import (
	"strconv"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
)

// progress is how far a stream has come in its history. Streams.mu protects it.
type progress struct {
	position         uint64    // the stream has delivered all its versions up to there
	movedAt          time.Time // when the position last moved
	beginRevision    uint64    // where the stream began in its history, for this process; 0 until that is known
	beganAt          time.Time // when it began there, by the record's clock
	resumedRevision  uint64    // the position that this process took over from the record
	recordedRevision uint64    // the newest revision on record; the position may be behind it
	onRecord         bool      // an earlier recorder has followed the stream in its present history
}

// reach notes a position.
func (p *progress) reach(position uint64, now time.Time) {
	if position > p.position {
		p.position, p.movedAt = position, now
	}
	if p.beginRevision == 0 {
		p.beginRevision = position
	}
}

// resume takes over a position from the record. onRecord says that an earlier recorder has followed the stream.
func (p *progress) resume(position uint64, onRecord bool, beganAt time.Time) {
	p.position, p.resumedRevision, p.beginRevision, p.beganAt = position, position, position, beganAt
	p.onRecord = onRecord
}

// recall notes a revision on record.
func (p *progress) recall(revision uint64) { p.recordedRevision = max(p.recordedRevision, revision) }

// listed notes that a list is complete, and when it began. afterRollback says that it is the list after a rollback.
func (p *progress) listed(beganAt time.Time, afterRollback bool) {
	if afterRollback {
		p.recordedRevision, p.resumedRevision, p.onRecord = 0, 0, false // The record is of the old history.
	}
	if afterRollback || p.beganAt.IsZero() {
		p.beginRevision, p.beganAt = 0, beganAt
	}
}

// servedHere reports whether this process was served a revision. If not, the revision comes from the record.
func (p *progress) servedHere(revision uint64) bool {
	return revision > max(p.resumedRevision, p.recordedRevision)
}

// movedTo returns when the stream reached its position. It is zero for any other revision, and for the position on
// record.
func (p *progress) movedTo(revision uint64) (at time.Time) {
	if revision == p.position && revision > p.resumedRevision {
		at = p.movedAt
	}
	return at
}

// completeLocked returns up to which version, and since when, the stream is certainly complete after its etcd was
// put back. There the gap begins. All that was served before the evidence is of the old history, too. If the
// evidence is older than this process, an earlier recorder was served it, and the gap begins at the evidence. If
// the stream is not known to be in that etcd, its gap begins no later than latestBegin (I4).
func (p *progress) completeLocked(in *etcdState, e *evidence, latestBegin *time.Time) deltafifo.Begin {
	from := deltafifo.Begin{Time: p.beganAt}
	if p.beginRevision != 0 {
		from.ResourceVersion = strconv.FormatUint(p.beginRevision, 10)
	}
	from = in.newestSettledLocked(from, e.servedAt)
	if latestBegin == nil && !e.servedAt.IsZero() && e.servedAt.Before(from.Time) {
		from = deltafifo.Begin{ResourceVersion: strconv.FormatUint(e.oldRevision, 10), Time: e.servedAt}
	}
	if latestBegin != nil && !latestBegin.IsZero() && latestBegin.Before(from.Time) {
		from.Time = *latestBegin
	}
	return from
}

// newestKnown returns the newest revision of the stream, on record or not.
func (p *progress) newestKnown() uint64 { return max(p.position, p.recordedRevision) }

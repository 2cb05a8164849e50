package spooling

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Leftover is the state of a stream at the end of the spool that an earlier recorder left.
type Leftover struct {
	deltafifo.Spooled
	Listing     bool // the spool ends within a list
	ListCause   delta.Cause
	Interrupted delta.Cause
	Rules       *string            // of its last whole list, nil if it has none
	NewHistory  bool               // it has a whole list after a rollback, and the record still has the old history
	Lives       map[types.UID]bool // decisions, as in the stream, together with the recorded ones
	// Unverified are some of the last served versions, with the newest. The recorder may have ended before it checked
	// whether etcd was restored to an older state.
	Unverified []postgres.Version
	// Revisions are the newest revisions of the stream in the spool. Other streams need not look at them.
	Revisions []string
}

// keptRevisions bounds Leftover.Revisions; it holds up to twice as many. A recovery needs those of a few minutes.
const keptRevisions = 1 << 16

// take adds one entry.
func (l *Leftover) take(s Stream, e *deltafifo.Entry) {
	l.Entries++
	l.At = e.Observed
	if e.Source == delta.SourceWatch && l.Position == (delta.Position{}) {
		l.Position = delta.At(s.Recorded().Position()) // The watch has gone on from there.
	}
	e.Move(&l.Position)
	l.decide(s, e)
	l.sample(e)
	l.claim(e)
	switch m := e.Marker; {
	case m == nil:
		if fromList(e) && !l.Listing {
			l.Listing = true
			l.ListCause = l.causeOfList(s, e.Source)
		}
	case m.Kind == delta.Compared:
	case m.Kind == delta.Interrupted:
		l.interrupt(m)
	default:
		if m.Cause.Ends(l.Interrupted) {
			l.Interrupted = ""
		}
		if m.Kind == delta.Replaced {
			l.Listing = false
			l.Rules = &m.Rules
			l.NewHistory = l.NewHistory || m.Cause == delta.CauseHistoryReversed
		}
	}
}

// interrupt takes over why the stream cannot be followed.
func (l *Leftover) interrupt(m *delta.Marker) {
	if l.Interrupted = m.Cause; m.Cause == delta.CauseHistoryReversed {
		l.Unverified, l.Revisions = nil, nil // They belong to the lost history.
	}
}

// sample keeps some of the last served versions: the newest, and more of the newer ones than of the older ones.
func (l *Leftover) sample(e *deltafifo.Entry) {
	o, ok := e.Delta.Object.(*kube.Object)
	if !ok || e.Source != delta.SourceWatch || e.Delta.Type == delta.Deleted || l.Interrupted == delta.CauseHistoryReversed {
		return
	}
	l.Unverified = append(l.Unverified, postgres.Version{Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), ResourceVersion: o.ResourceVersion, Observed: e.Observed})
	if last := len(l.Unverified) - 1; last >= rollback.KeptSamples {
		thinned := l.Unverified[:0]
		for i, v := range l.Unverified {
			if (last-i)%2 == 0 {
				thinned = append(thinned, v)
			}
		}
		l.Unverified = thinned
	}
}

// claim notes the revision at which the server served the entry, if it did.
func (l *Leftover) claim(e *deltafifo.Entry) {
	o, ok := e.Delta.Object.(*kube.Object)
	switch {
	case e.Source == delta.SourceWatch && e.Position != "":
		l.Revisions = append(l.Revisions, e.Position) // also of an event that was passed over
	case ok && e.Source != delta.SourceInferred:
		l.Revisions = append(l.Revisions, o.ResourceVersion)
	}
	if len(l.Revisions) >= 2*keptRevisions {
		l.Revisions = slices.Clone(l.Revisions[keptRevisions:])
	}
}

// decide takes over the entry's decisions about which lives are recorded.
func (l *Leftover) decide(s Stream, e *deltafifo.Entry) {
	for _, d := range decisionsOf(e) {
		if d.Excluded {
			l.Lives[d.UID] = false
		} else {
			delete(l.Lives, d.UID) // The life has ended, or will be decided again.
		}
	}
	switch o, ok := e.Delta.Object.(*kube.Object); {
	case !ok:
	case e.Delta.Type == delta.Deleted:
		delete(l.Lives, o.UID)
	case s.Remembers(o.Namespace):
		l.Lives[o.UID] = true
	}
}

// causeOfList returns the cause of a list, given the source of its first delta. Its interruption may be recorded
// already.
func (l *Leftover) causeOfList(s Stream, source delta.Source) delta.Cause {
	if source == delta.SourceList {
		return delta.CauseFirstList
	}
	return cmp.Or(l.Interrupted, s.Recorded().OpenGap(), delta.CauseFirstList)
}

func fromList(e *deltafifo.Entry) bool {
	return e.Delta.Type != "" && e.Source.Listed()
}

package spooling

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Leftover is what a recorder before this one has left of a stream in the spool.
type Leftover struct {
	deltafifo.Spooled
	Listing     bool // it ends within a list
	ListCause   delta.Cause
	Interrupted delta.Cause
	Rules       *string            // under which its last whole list was taken in, nil if it has none
	Anew        bool               // it has all of a list after a history that is no more: the record's is that one
	Lives       map[types.UID]bool // decisions, as in the stream, with those on record
	// Unproven are versions that were served last, the newest among them. The recorder may have ended before it looked whether
	// etcd was put back to before them.
	Unproven []postgres.Version
}

// take goes one entry further.
func (l *Leftover) take(s Stream, e *deltafifo.Entry) {
	l.Entries++
	l.At = e.Observed
	if e.Source == delta.SourceWatch && l.Position == (delta.Position{}) {
		l.Position = delta.At(s.Record().Position()) // The watch has gone on from there.
	}
	e.Move(&l.Position)
	l.decide(s, e)
	l.sample(e)
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
			l.Anew = l.Anew || m.Cause == delta.CauseHistoryReversed
		}
	}
}

// interrupt takes over why the stream cannot be followed.
func (l *Leftover) interrupt(m *delta.Marker) {
	if l.Interrupted = m.Cause; m.Cause == delta.CauseHistoryReversed {
		l.Unproven = nil // They are of the history that is no more.
	}
}

// sample keeps some of what was served last: the newest, and more of the newer than of the older.
func (l *Leftover) sample(e *deltafifo.Entry) {
	o, ok := e.Delta.Object.(*kube.Object)
	if !ok || e.Source != delta.SourceWatch || e.Delta.Type == delta.Deleted || l.Interrupted == delta.CauseHistoryReversed {
		return
	}
	l.Unproven = append(l.Unproven, postgres.Version{Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), ResourceVersion: o.ResourceVersion, Observed: e.Observed})
	if last := len(l.Unproven) - 1; last >= rollback.KeptSamples {
		thinned := l.Unproven[:0]
		for i, v := range l.Unproven {
			if (last-i)%2 == 0 {
				thinned = append(thinned, v)
			}
		}
		l.Unproven = thinned
	}
}

// decide takes over what the entry says of which lives are recorded.
func (l *Leftover) decide(s Stream, e *deltafifo.Entry) {
	for _, d := range decisionsOf(e) {
		if d.Excluded {
			l.Lives[d.UID] = false
		} else {
			delete(l.Lives, d.UID) // The life has ended, or it was to be decided anew.
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

// causeOfList is why there is a list, of which this is the source of the first delta. That it was interrupted may be on record already.
func (l *Leftover) causeOfList(s Stream, source delta.Source) delta.Cause {
	if source == delta.SourceList {
		return delta.CauseFirstList
	}
	return cmp.Or(l.Interrupted, s.Record().OpenGap(), delta.CauseFirstList)
}

func fromList(e *deltafifo.Entry) bool {
	return e.Delta.Type != "" && e.Source.Listed()
}

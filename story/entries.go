package story

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

// An Entry is one delta of a story.
type Entry struct {
	history.Version
	Span   history.Span // when it happened
	Object *Object      // the object of the delta; for an Event, the object that the Event is about
	Event  *Event       // nil if the delta does not belong to an Event
	Change change.Change
}

// An Event holds the content of an Event.
type Event struct {
	Type, Reason, Message string
	Count                 string // how often it happened, as a number
	Component             string // which controller reported it
}

// Entries yields the deltas of the story in the order of the record. It yields the errors of Record.Versions, and continues
// after them in the same cases. It may be ranged over once.
func (s *Story) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := s.loadPrior(ctx); err != nil {
			yield(Entry{}, err)
			return
		}
		q := s.query
		q.Scope, q.ObjectID, q.UID, q.ObjectIDs = history.Scope{}, 0, "", s.ids()
		for v, err := range s.rec.Versions(ctx, q) {
			e := s.entry(v)
			if v.Stream != nil {
				var failed error
				if e.Span, failed = s.times.Of(ctx, &v.Delta); failed != nil {
					yield(Entry{}, failed)
					return
				}
			}
			if err == nil {
				s.rollouts.observe(&e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// loadPrior gives the tracker the Deployments and ReplicaSets as they were before the story. It ignores damaged ones: the
// story reports them.
func (s *Story) loadPrior(ctx context.Context) error {
	if s.prior == 0 {
		return nil
	}
	point, err := s.rec.Resolve(ctx, history.AtSeq(s.prior), history.Scope{})
	if errors.Is(err, history.ErrBeforeRecord) {
		return nil
	}
	if err != nil {
		return err
	}
	options := history.RebuildOptions{Damaged: func(*history.DamagedError) {}}
	for _, o := range s.Objects {
		if o.ObjectID > s.prior || !rolls(o.Stream) {
			continue
		}
		scope := history.Scope{Streams: []int32{o.Stream.ID}, Namespace: o.Namespace, Name: o.Name}
		_, err := s.rec.Rebuild(ctx, point, scope, options, func(found history.Object) error {
			if found.ObjectID == o.ObjectID {
				s.rollouts.setPrior(o, found.Doc)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Story) entry(v history.Version) Entry {
	e := Entry{Version: v, Object: s.objects[v.ObjectID]}
	if o := s.about[v.ObjectID]; o != nil {
		e.Object, e.Event = o, EventOf(v.Doc)
	}
	if v.Stream != nil {
		e.Change = change.Of(change.Delta{
			Group: v.Stream.Group, Resource: v.Stream.Resource, Type: v.Type, Source: v.Source, Patch: v.Patch, Before: v.Before, Object: v.Doc,
		})
	}
	return e
}

// EventOf reads an Event of the core group or of events.k8s.io, which names three fields differently.
func EventOf(doc patch.Doc) *Event {
	return &Event{
		Type: text(doc, "/type"), Reason: text(doc, "/reason"),
		Message:   cmp.Or(text(doc, "/message"), text(doc, "/note")),
		Count:     cmp.Or(number(doc, "/series/count"), number(doc, "/count"), number(doc, "/deprecatedCount")),
		Component: cmp.Or(text(doc, "/reportingComponent"), text(doc, "/source/component"), text(doc, "/reportingController"), text(doc, "/deprecatedSource/component")),
	}
}

// Rollouts returns the rollouts in the entries so far, in the order in which they started.
func (s *Story) Rollouts() []*Rollout { return s.rollouts.all }

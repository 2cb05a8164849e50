package troubles

import (
	"context"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/state"
)

// earlier returns the kept snapshot from which the next one can be derived, or nil. If the record was restored from an
// older backup and then got other deltas, it lacks the commit of the snapshot's head. The snapshot is then useless.
func (f *Finder) earlier(ctx context.Context, next *snapshot) (*snapshot, error) {
	from := f.Kept.before(next)
	if from == nil || from.head == next.head {
		return from, nil
	}
	compared, err := f.Record.Commits().CompareHead(ctx, from.head)
	if err != nil || compared.Outcome != history.HeadEqual {
		return nil, err
	}
	return from, nil
}

// derive fills a snapshot from an earlier one and the deltas between. It reports whether it succeeded. If a version cannot
// be folded, the snapshot must be rebuilt, which reports what is damaged or missing.
func (f *Finder) derive(ctx context.Context, s, from *snapshot) bool {
	for id, item := range from.items {
		same := *item
		s.items[id] = &same
	}
	if from.seq < s.seq {
		q := history.Query{Scope: history.Scope{Streams: s.streams}, FromSeq: from.seq + 1, ToSeq: s.seq}
		for v, err := range f.Record.Versions(ctx, q) {
			if err != nil {
				clear(s.items)
				return false
			}
			s.apply(&v)
		}
	}
	for _, item := range s.items {
		if item.decidedBy < s.first {
			item.setUnknown("") // It began before the search begins.
		}
	}
	s.named = from.named
	return true
}

// apply adds the next version of an object.
func (s *snapshot) apply(v *history.Version) {
	how, text := state.Of(v.Stream.GroupResource().String(), v.Doc)
	if v.Type == delta.Deleted || how != state.Bad {
		delete(s.items, v.ObjectID)
		return
	}
	item := s.items[v.ObjectID]
	if item == nil {
		item = newItem(history.Life{ObjectID: v.ObjectID, Stream: v.Stream, Namespace: v.Namespace, Name: v.Name, UID: v.UID}, "")
		s.items[v.ObjectID] = item
	}
	item.Text = short(text)
	item.apply(v)
}

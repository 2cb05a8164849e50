package stream

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Items returns the items that the sink stores for the entries.
func Items(entries []deltafifo.Entry) ([]postgres.Item, error) {
	items := make([]postgres.Item, 0, len(entries))
	for i := range entries {
		st, ok := entries[i].Stream.(*Stream)
		if !ok {
			return nil, fmt.Errorf("queue entry with a %T instead of a stream", entries[i].Stream)
		}
		decisions, _ := entries[i].Attached.([]postgres.Item)
		for _, decided := range decisions {
			// Without a time of its own, the sink would date the item now, and all later items with it.
			decided.Observed = entries[i].Observed
			items = append(items, decided)
		}
		item, err := st.item(&entries[i])
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		for _, b := range entries[i].Others {
			other, ok := b.Stream.(*Stream)
			if !ok {
				return nil, fmt.Errorf("marker about a %T instead of a stream", b.Stream)
			}
			m := *entries[i].Marker
			m.FromRV, m.FromTime = b.FromRV, b.FromTime
			item, err := other.item(&deltafifo.Entry{Observed: entries[i].Observed, Marker: &m})
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
	}
	return items, nil
}

// known is an object of the record that is stored again: a postgres.KnownObject, or a keyframe.
type known interface {
	postgres.Object
	Version() string
}

// item returns the item of an entry. Only the encoder calls it, and it owns the stream's dating.
func (s *Stream) item(e *deltafifo.Entry) (postgres.Item, error) {
	item := postgres.Item{Stream: s.recorded.ID(), Observed: e.Observed, Position: e.Position}
	occurrence := s.dating.of(e.Observed)
	if e.Marker != nil {
		s.mark(&item, e.Marker, occurrence)
		return item, nil
	}
	if e.Bookmark() {
		if e.Source == "" {
			occurrence.live()
		}
		item.Kind, item.Source = postgres.Position, e.Source
		return item, nil
	}
	item.Kind, item.Type, item.Source = postgres.Delta, e.Delta.Type, e.Source
	switch obj := e.Delta.Object.(type) {
	case *kube.Object:
		item.Object, item.Version = obj, obj.GroupVersionKind().Version
		evidence, ok := obj.EvidenceTime()
		// If an object is deleted without grace, its last times are older than its deletion.
		ok = ok && (e.Delta.Type != delta.Deleted || obj.DeletionTimestamp != nil)
		item.Occurred = occurrence.at(s.dating.watchedSince(e.Observed), e.Observed, evidence, ok)
	case cache.DeletedFinalStateUnknown:
		item.Key, item.RV = obj.Key, e.ListRV
		if last, ok := obj.Obj.(interface{ GetUID() types.UID }); ok {
			item.UID = last.GetUID()
		}
		item.Occurred = occurrence.at(s.dating.watchedSince(e.Observed), e.Observed, time.Time{}, false)
	case known:
		item.Object, item.Version = obj, obj.Version()
	default:
		return postgres.Item{}, fmt.Errorf("stream %s: a delta of %T cannot be recorded", s.Name(), obj)
	}
	return item, nil
}

func (s *Stream) mark(item *postgres.Item, m *delta.Marker, occurrence *occurrence) {
	item.Kind, item.Marker = postgres.Marked, *m
	switch {
	case m.Kind == delta.Replaced:
		occurrence.live()
	case m.Kind == delta.Interrupted && m.Cause == delta.CauseHistoryReversed:
		occurrence.noteRollback()
	}
}

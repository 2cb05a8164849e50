package changelog

import (
	"context"
	"slices"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/story"
)

// withOwned prints one log of named objects and their owned objects.
func (l *logCommand) withOwned(ctx context.Context, rec *env.Record, targets []resource.Target, scopes []history.Scope) error {
	var all history.Scope
	var ids []int64
	for _, scope := range scopes {
		found, err := story.Find(ctx, rec.Record, history.Query{Scope: scope})
		if err != nil {
			return err
		}
		if len(found.Objects) == 0 {
			return notRecorded(targets, scope)
		}
		if err := found.Search(ctx); err != nil {
			return err
		}
		for _, o := range found.Objects {
			ids = append(ids, o.ObjectID)
			all.Streams = append(all.Streams, o.Stream.ID)
		}
	}
	slices.Sort(ids)
	slices.Sort(all.Streams)
	ids, all.Streams = slices.Compact(ids), slices.Compact(all.Streams)
	w := l.writer(rec, all)
	w.printer.objects = true
	return w.write(ctx, history.Query{ObjectIDs: ids, Types: l.wanted})
}

package lanes

import (
	"context"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
	"github.com/kuberewind/kuberewind/timeline/internal/state"
)

// versions returns the last versions of some lanes in the window, unless the object was deleted in it.
func (c *collection) versions(ctx context.Context, of []*entry, wanted func(*entry) bool) (map[int64]patch.Doc, error) {
	var ids []int64
	for _, e := range of {
		if wanted(e) {
			ids = append(ids, e.life.ObjectID)
		}
	}
	docs, missing, err := c.finder.Record.Lookup().LastVersions(ctx, ids, c.end)
	c.answer.Lost(missing)
	return docs, err
}

// trouble sets what is wrong with some lanes at the end of the window.
func (c *collection) trouble(ctx context.Context, of []*entry) error {
	resource := func(e *entry) string { return e.life.Stream.GroupResource().String() }
	docs, err := c.versions(ctx, of, func(e *entry) bool { return e.trouble == "" && state.CanBeBad(resource(e)) })
	if err != nil {
		return err
	}
	for _, e := range of {
		if doc, ok := docs[e.life.ObjectID]; ok {
			if s, text := state.Of(resource(e), doc); s == state.Bad {
				e.trouble = text
			}
		}
	}
	return nil
}

// nodes puts Pods below their nodes.
func (c *collection) nodes(ctx context.Context, of []*entry) error {
	docs, err := c.versions(ctx, of, func(e *entry) bool { return e.life.Stream.GroupResource().String() == "pods" })
	if err != nil || len(docs) == 0 || c.end == 0 {
		return err
	}
	streams, err := c.finder.Record.Streams(ctx)
	if err != nil {
		return err
	}
	named := map[string]history.Life{}
	q := history.LifeQuery{Scope: history.Scope{Streams: marks.StreamsOf(streams, []string{"nodes"})}, BornBy: c.end, EndedAfter: c.first - 1}
	for life, err := range c.finder.Record.Lives(ctx, q) {
		if err != nil {
			return err
		}
		named[life.Name] = life
	}
	for _, e := range of {
		value, _ := patch.Get(docs[e.life.ObjectID], "/spec/nodeName")
		name, _ := patch.Unquote(value)
		if life, ok := named[string(name)]; ok {
			e.adopt(c.add(life))
		}
	}
	return nil
}

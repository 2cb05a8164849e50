package troubles

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
)

// changed lists the classes of changes that people can make.
var changed = []class.Class{class.Changed, class.Added, class.Deleted}

// A cause is the search for the change before one trouble: the newest of the changes with the highest rank.
type cause struct {
	item  *Item
	chain map[int64]history.Life // the object and its owners
	root  int64
	first int64 // no delta of the chain has a lower seq
	found *marks.Mark
	rank  int
}

// changes finds, in one reading, the last change of the object and its owners before each trouble. It does not read again
// what an earlier snapshot found.
func (f *Finder) changes(ctx context.Context, a *Answer, s *snapshot, gaps []history.Gap) error {
	causes, ids, err := f.causes(ctx, a.Items, s)
	if err != nil || len(causes) == 0 {
		return err
	}
	reading, err := f.Reader.Begin(ctx, ask.Filter{Classes: changed}, ask.Window{}, ids)
	if err != nil {
		return err
	}
	reading.KeepPatches()
	first, last := ids[0], int64(0)
	for _, c := range causes {
		last = max(last, *c.item.Since)
	}
	left, err := reading.While(ctx, first, last, f.Patience, func(found []marks.Mark) bool {
		return !consider(causes, found)
	})
	if err != nil {
		return err
	}
	reading.ReportTo(&a.Answer)
	for _, c := range causes {
		unread := left >= c.first
		c.name(unread, reading.Missing, gaps)
		if (!unread || c.rank == highest) && len(reading.Missing) == 0 {
			s.named[c.item.life.ObjectID] = c.named()
		}
	}
	return nil
}

// causes begins the searches, and returns the lives to read, in order. The snapshot keeps what is known about the listed
// troubles.
func (f *Finder) causes(ctx context.Context, items []*Item, s *snapshot) (causes []*cause, ids []int64, err error) {
	var begun []*Item
	var lives []history.Life
	for _, item := range items {
		if item.Since != nil {
			begun, lives = append(begun, item), append(lives, item.life)
		}
	}
	chains, err := find.AllAbove(ctx, f.Record, lives)
	if err != nil {
		return nil, nil, err
	}
	known := s.named
	s.named = map[int64]named{}
	for _, item := range begun {
		c := newCause(item, chains[item.life.ObjectID])
		if n, ok := known[item.life.ObjectID]; ok && n.since == *item.Since && slices.Equal(n.chain, c.ids()) {
			item.FirstChange, item.Unknown = n.change, n.unknown
			s.named[item.life.ObjectID] = n
			continue
		}
		causes, ids = append(causes, c), append(ids, c.ids()...)
	}
	slices.Sort(ids)
	return causes, slices.Compact(ids), nil
}

func newCause(item *Item, above []history.Life) *cause {
	c := &cause{item: item, chain: map[int64]history.Life{}, first: item.life.ObjectID, rank: -1}
	for _, l := range append([]history.Life{item.life}, above...) {
		c.chain[l.ObjectID], c.root, c.first = l, l.ObjectID, min(c.first, l.ObjectID)
	}
	return c
}

// ids returns the lives of the chain, in order.
func (c *cause) ids() []int64 { return slices.Sorted(maps.Keys(c.chain)) }

// named returns the result of the search.
func (c *cause) named() named {
	return named{since: *c.item.Since, chain: c.ids(), change: c.item.FirstChange, unknown: c.item.Unknown}
}

// consider adds a slice of changes, which are older than those before it. It reports whether no older change can matter.
func consider(causes []*cause, found []marks.Mark) (all bool) {
	all = true
	for _, c := range causes {
		for i := len(found) - 1; i >= 0 && c.rank < highest; i-- {
			c.consider(&found[i])
		}
		all = all && c.rank == highest
	}
	return all
}

func (c *cause) consider(m *marks.Mark) {
	if _, ours := c.chain[m.ObjectID]; !ours || m.Seq > *c.item.Since {
		return
	}
	if r := rank(m, c.root); r > c.rank {
		c.found, c.rank = m, r
	}
}

// highest is the rank of a change of the root's wanted state.
const highest = 3

// rank prefers a change of the root, because its controllers' changes follow from it. It also prefers a change of the
// wanted state.
func rank(m *marks.Mark, root int64) (r int) {
	if m.ObjectID == root {
		r = 2
	}
	for op := range patch.Operations(m.Patch) {
		if len(op.Path) > 0 && op.Path[0] != "metadata" && op.Path[0] != "status" {
			return r + 1
		}
	}
	return r
}

// name sets the change, unless another change may have come between it and the trouble.
func (c *cause) name(unread bool, missing []*history.MissingDayError, gaps []history.Gap) {
	from, after := time.Time{}, int64(0)
	if c.found != nil {
		from = c.found.OccurredAt
	}
	if c.rank == highest {
		after = c.found.Seq // No earlier change matters.
	}
	lost := slices.IndexFunc(missing, func(m *history.MissingDayError) bool { return m.LastSeq > after && m.FirstSeq < *c.item.Since })
	gap := between(gaps, c.chain, from, time.UnixMilli(*c.item.SinceTime))
	switch {
	case gap != nil:
		c.item.Unknown = fmt.Sprintf("Changes of %s may be missing before it (%s): what came before the trouble is not known.", gap.Stream, gap.Cause)
	case lost >= 0:
		c.item.Unknown = fmt.Sprintf("Changes of %s are not in the database: what came before the trouble is not known.", missing[lost].Day.Format(time.DateOnly))
	case unread && c.rank < highest:
		c.item.Unknown = "The record was not read far enough back in the available time: step to the previous change."
	case c.found != nil:
		c.item.FirstChange = &Change{Ref: find.RefOf(c.chain[c.found.ObjectID]), Seq: c.found.Seq, Time: c.found.OccurredAt.UnixMilli(), Text: words(c.found)}
	}
}

// between returns a gap of the stream of some lives that touches the time between two moments.
func between(gaps []history.Gap, chain map[int64]history.Life, from, to time.Time) *history.Gap {
	streams := map[int32]bool{}
	for _, l := range chain {
		streams[l.Stream.ID] = true
	}
	for i := range gaps {
		g := &gaps[i]
		ours := g.Stream != nil && streams[g.Stream.ID]
		if ours && g.Outcome != delta.OutcomeResumed && !g.FromAt.IsZero() && g.FromAt.Before(to) && (g.ToAt.IsZero() || g.ToAt.After(from)) {
			return g
		}
	}
	return nil
}

// words describes a change.
func words(m *marks.Mark) string {
	text := map[class.Class]string{class.Added: "made", class.Deleted: "deleted", class.Changed: "changed"}[m.Class]
	paths := 0
	for op := range patch.Operations(m.Patch) {
		if len(op.Path) == 0 || op.Path[0] == "status" || len(op.Path) > 1 && op.Path[0] == "metadata" && (op.Path[1] == "managedFields" || op.Path[1] == "generation") {
			continue
		}
		if paths++; paths == 1 {
			text += " " + marks.Pointer(op.Path)
		}
	}
	if paths > 1 {
		text += fmt.Sprintf(" and %d more", paths-1)
	}
	if m.Manager != "" {
		text += " by " + m.Manager
	}
	return short(text)
}

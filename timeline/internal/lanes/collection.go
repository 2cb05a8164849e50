package lanes

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
)

// An entry is a life that has a lane.
type entry struct {
	life            history.Life
	changes, hidden int64
	weight          int64 // its changes, and those of all entries below it
	trouble         string
	troubled        int64 // how many of itself and the entries below it are in trouble
	owner           *entry
	children        []*entry
	depth           int
}

// A collection builds one answer.
type collection struct {
	finder *Finder
	query  *Query
	all    []*entry
	byID   map[int64]*entry
	byUID  map[string]*entry
	answer *Answer

	first, end int64 // first seq of the window, and last seq observed before its end
}

// mostGrouped is the number of lanes whose owners are looked up before sorting.
const mostGrouped = 2000

// count counts the deltas of each life. It returns the place up to which it counted.
func (c *collection) count(ctx context.Context) (at ask.Place, err error) {
	if at, err = c.bounds(ctx); err != nil {
		return at, err
	}
	reading, err := c.finder.Reader.Begin(ctx, c.query.Filter, c.query.Window, nil)
	if err != nil {
		return at, err
	}
	streams, err := c.finder.Record.Streams(ctx)
	if err != nil {
		return at, err
	}
	changes, alone, oldest := map[int64]int64{}, c.smallStreams(streams), c.query.Window.To
	left, err := c.read(ctx, reading, at, func(found []marks.Mark) {
		for i := range found {
			if m := &found[i]; alone[m.Stream] != "" {
				c.exclude(m.ObjectID, alone[m.Stream])
			} else {
				changes[m.ObjectID]++
			}
		}
		if len(found) > 0 {
			oldest = found[0].ObservedAt
		}
	})
	if err != nil {
		return at, err
	}
	c.answer.Hidden[class.Heartbeat] = reading.HiddenInAll()
	reading.ReportTo(&c.answer.Answer)
	if at.Low = left + 1; left >= c.first {
		c.answer.Older = ask.Place{Low: at.Low, Last: at.Last}.String()
		c.answer.Incomplete = append(c.answer.Incomplete, lack.NotCounted(c.query.Window.From, times.Earlier(oldest, c.query.Window.To)))
	}
	return at, c.enter(ctx, changes, reading.Hidden)
}

// bounds finds the seqs to count. Deltas of the window may be on record after its end, if they were recovered after a
// pause.
func (c *collection) bounds(ctx context.Context) (at ask.Place, err error) {
	first, last, err := c.finder.Record.Timeline().Between(ctx, c.query.Window.From, c.query.Window.To)
	if err != nil {
		return at, err
	}
	if at, err = ask.PlaceOf(c.query.Cursor, min(last, c.answer.Seq), c.answer.Seq); err != nil {
		return at, err
	}
	end, err := c.finder.Record.Timeline().LastBefore(ctx, c.query.Window.To)
	c.first, c.end, at.Low = first, min(end, at.Last), max(at.Low, first)
	return at, err
}

// read reads the deltas. For later lanes of a list, it reads exactly the deltas from which the list was made.
func (c *collection) read(ctx context.Context, reading *marks.Reading, at ask.Place, give func([]marks.Mark)) (left int64, err error) {
	if at.Offset > 0 {
		return reading.Back(ctx, at.Low, at.Last, math.MaxInt64, give)
	}
	return reading.Again(ctx, c.first, at.Low, at.Last, c.finder.Patience, give)
}

// enter makes a lane for each life that changed.
func (c *collection) enter(ctx context.Context, changes, hidden map[int64]int64) error {
	ids := make([]int64, 0, len(changes))
	for id := range changes {
		ids = append(ids, id)
	}
	for life, err := range c.finder.Record.Lives(ctx, history.LifeQuery{ObjectIDs: ids}) {
		if err != nil {
			return err
		}
		c.add(life)
	}
	for _, e := range c.all {
		e.changes = changes[e.life.ObjectID]
	}
	if err := c.unchanged(ctx); err != nil {
		return err
	}
	for id, n := range hidden {
		if e := c.byID[id]; e != nil {
			e.hidden = n
		}
	}
	return nil
}

// add adds a life once, unless its resource has no lanes.
func (c *collection) add(l history.Life) *entry {
	if e, known := c.byID[l.ObjectID]; known {
		return e
	}
	if name := l.Stream.GroupResource().String(); len(c.query.Filter.Resources) == 0 && small(name) {
		c.exclude(l.ObjectID, name)
		return nil
	}
	e := &entry{life: l}
	c.all = append(c.all, e)
	c.byID[l.ObjectID], c.byUID[l.UID] = e, e
	return e
}

// exclude counts a life without a lane, once.
func (c *collection) exclude(id int64, resource string) {
	if _, known := c.byID[id]; !known {
		c.byID[id] = nil
		c.answer.Left[resource]++
	}
}

// smallStreams returns the resources whose objects have no lanes, by stream. The collection does not look up their lives:
// there may be more of them than of all others.
func (c *collection) smallStreams(streams []history.Stream) map[int32]string {
	found := map[int32]string{}
	for i := range streams {
		if name := streams[i].GroupResource().String(); len(c.query.Filter.Resources) == 0 && small(name) {
			found[streams[i].ID] = name
		}
	}
	return found
}

// small reports whether single objects of a resource mean little.
func small(resource string) bool {
	return resource == "events" || resource == "events.events.k8s.io" || resource == "leases.coordination.k8s.io"
}

// unchanged adds the lives that lived in the window, if the filter bounds objects and not changes.
func (c *collection) unchanged(ctx context.Context) error {
	f := &c.query.Filter
	if c.end == 0 || f.Changes() || f.Namespaces == nil && f.Resources == nil && f.Name == "" {
		return nil
	}
	streams, err := c.finder.Record.Streams(ctx)
	if err != nil {
		return err
	}
	namespaces := f.Namespaces
	if namespaces == nil {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		q := history.LifeQuery{Scope: history.Scope{Streams: marks.StreamsOf(streams, f.Resources), Namespace: namespace}, BornBy: c.end, EndedAfter: c.first - 1}
		for life, err := range c.finder.Record.Lives(ctx, q) {
			if err != nil {
				return err
			}
			if f.Named(life.Name) {
				c.add(life)
			}
		}
	}
	return nil
}

// find finds the owners, nodes and troubles for sorting and grouping.
func (c *collection) find(ctx context.Context) error {
	most := slices.Clone(c.all)
	slices.SortFunc(most, byChanges)
	most = most[:min(len(most), mostGrouped)]
	if c.query.Group == ByNode {
		if err := c.nodes(ctx, most); err != nil {
			return err
		}
	}
	for asked := most; c.query.Group == ByOwner && len(asked) > 0; {
		added, err := c.owners(ctx, asked)
		if err != nil {
			return err
		}
		asked = added
	}
	if c.query.Sort == ByTrouble {
		return c.trouble(ctx, most)
	}
	return nil
}

// owners sets the owners of some lanes. It returns the owners that it added as lanes.
func (c *collection) owners(ctx context.Context, of []*entry) (added []*entry, err error) {
	lives := make([]history.Life, 0, len(of))
	for _, e := range of {
		lives = append(lives, e.life)
	}
	owner := map[string][]*entry{}
	for r, err := range c.finder.Record.Kinship().Owners(ctx, lives) {
		if err != nil {
			return nil, err
		}
		owner[r.Owners[0]] = append(owner[r.Owners[0]], c.byID[r.ObjectID])
	}
	var unknown []string
	for uid := range owner {
		if c.byUID[uid] == nil {
			unknown = append(unknown, uid)
		}
	}
	if added, err = c.addByUID(ctx, unknown); err != nil {
		return nil, err
	}
	for uid, owned := range owner {
		if above := c.byUID[uid]; above != nil {
			for _, e := range owned {
				e.adopt(above)
			}
		}
	}
	return added, nil
}

func (c *collection) addByUID(ctx context.Context, uids []string) (added []*entry, err error) {
	if len(uids) == 0 {
		return nil, nil
	}
	for life, err := range c.finder.Record.Lives(ctx, history.LifeQuery{UIDs: uids}) {
		if err != nil {
			return nil, err
		}
		if e := c.add(life); e != nil {
			added = append(added, e)
		}
	}
	return added, nil
}

// adopt puts a lane below its owner. It does not close a circle of owners, which only a broken controller makes.
func (e *entry) adopt(above *entry) {
	for up := above; up != nil; up = up.owner {
		if up == e {
			return
		}
	}
	if e.owner == nil {
		e.owner, above.children = above, append(above.children, e)
	}
}

// sorted returns the lanes in their order. In a group, each owner comes before the objects that it owns.
func (c *collection) sorted() []*entry {
	var roots []*entry
	for _, e := range c.all {
		if e.owner == nil {
			e.weigh()
			roots = append(roots, e)
		}
	}
	sorted := make([]*entry, 0, len(c.all))
	var walk func(level []*entry, depth int)
	walk = func(level []*entry, depth int) {
		slices.SortFunc(level, c.order())
		for _, e := range level {
			e.depth = depth
			sorted = append(sorted, e)
			walk(e.children, depth+1)
		}
	}
	walk(roots, 0)
	return sorted
}

func (e *entry) weigh() int64 {
	if e.weight, e.troubled = e.changes, 0; e.trouble != "" {
		e.troubled = 1
	}
	for _, child := range e.children {
		e.weight += child.weigh()
		e.troubled += child.troubled
	}
	return e.weight
}

func (c *collection) order() func(a, b *entry) int {
	byWeight := func(a, b *entry) int { return cmp.Or(cmp.Compare(b.weight, a.weight), byName(a, b)) }
	switch c.query.Sort {
	case ByName:
		return byName
	case ByTrouble:
		return func(a, b *entry) int { return cmp.Or(cmp.Compare(b.troubled, a.troubled), byWeight(a, b)) }
	}
	return byWeight
}

func byChanges(a, b *entry) int { return cmp.Or(cmp.Compare(b.changes, a.changes), byName(a, b)) }

func byName(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.life.Namespace, b.life.Namespace), cmp.Compare(a.life.Stream.GroupResource().String(), b.life.Stream.GroupResource().String()),
		cmp.Compare(a.life.Name, b.life.Name), cmp.Compare(a.life.ObjectID, b.life.ObjectID))
}

package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

// compared holds what is different between two instants. Of the objects of the first, it keeps the last version compressed until the
// second has been read; of those of the second, only what is different.
type compared struct {
	env     *Env
	rec     *Record
	selects selector
	chosen  *chosen

	mu              sync.Mutex // protects what follows
	before          map[int64]*side
	after           map[int64]*side
	broken          map[int64]*history.DamagedError
	onlyBookkeeping int
}

// side is an object at one of the two instants.
type side struct {
	history.Object // without Doc
	digest         [16]byte
	packed         []byte // s2
}

func newCompared(e *Env, rec *Record, selects selector, targets []Target) *compared {
	return &compared{env: e, rec: rec, selects: selects, chosen: newChosen(targets), before: map[int64]*side{}, after: map[int64]*side{}, broken: map[int64]*history.DamagedError{}}
}

func pack(o *history.Object) *side {
	s := &side{Object: *o, digest: patch.Digest(o.Doc), packed: s2.Encode(nil, o.Doc)}
	s.Doc = nil
	return s
}

func (s *side) doc() (patch.Doc, error) {
	if s == nil {
		return nil, nil
	}
	return s2.Decode(nil, s.packed)
}

// read compares the objects of a scope.
func (c *compared) read(ctx context.Context, from, to history.Point, scope history.Scope) error {
	first := func(o history.Object) error {
		s := pack(&o)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.before[o.ObjectID] = s
		return nil
	}
	if err := c.rebuild(ctx, from, scope, first); err != nil {
		return err
	}
	return c.rebuild(ctx, to, scope, c.second)
}

func (c *compared) second(o history.Object) error {
	digest := patch.Digest(o.Doc)
	c.mu.Lock()
	same := c.before[o.ObjectID]
	if same != nil && same.digest == digest {
		delete(c.before, o.ObjectID)
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	s := pack(&o)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after[o.ObjectID] = s
	return nil
}

func (c *compared) rebuild(ctx context.Context, point history.Point, scope history.Scope, emit func(history.Object) error) error {
	progress := c.env.progress("rebuilding the cluster at " + point.Instant.String())
	defer progress.end()
	stats, err := c.rec.Rebuild(ctx, point, scope, history.RebuildOptions{Damaged: c.noteDamage, Progress: progress.tell}, func(o history.Object) error {
		if !c.chosen.has(o.Stream.GroupResource(), o.Name) {
			return nil
		}
		return emit(o)
	})
	if err != nil {
		return err
	}
	c.env.Notes(stats.Notes)
	return nil
}

func (c *compared) noteDamage(d *history.DamagedError) {
	if d.Stream != nil && !c.chosen.has(d.Stream.GroupResource(), d.Name) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken[d.ObjectID] = d
}

// damage is what could not be compared.
func (c *compared) damage() error {
	all := make([]*history.DamagedError, 0, len(c.broken))
	for _, d := range c.broken {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *history.DamagedError) int { return cmp.Compare(a.Seq, b.Seq) })
	errs := make([]error, 0, len(all))
	for _, d := range all {
		errs = append(errs, fmt.Errorf("not compared: %w", d))
	}
	return errors.Join(errs...)
}

// difference is one object that is not the same at both instants.
type difference struct {
	change        string // added, removed, changed
	recreated     bool
	before, after *side
}

const (
	differenceAdded   = "added"
	differenceRemoved = "removed"
	differenceChanged = "changed"
)

// object is the object as far as it can be named at all.
func (d *difference) object() *history.Object {
	if d.after != nil {
		return &d.after.Object
	}
	return &d.before.Object
}

func (d *difference) docs() (before, after patch.Doc, err error) {
	if before, err = d.before.doc(); err == nil {
		after, err = d.after.doc()
	}
	return before, after, err
}

// result gives the differences by resource, namespace and name.
func (c *compared) result(allFields bool) ([]difference, error) {
	var found []difference
	for id, before := range c.before {
		d := difference{change: differenceRemoved, before: before, after: c.after[id]}
		if d.after != nil {
			d.change = differenceChanged
		}
		found = append(found, d)
	}
	for id, after := range c.after {
		if c.before[id] == nil {
			found = append(found, difference{change: differenceAdded, after: after})
		}
	}
	slices.SortFunc(found, func(a, b difference) int {
		x, y := a.object(), b.object()
		return cmp.Or(cmp.Compare(x.Stream.GroupResource().String(), y.Stream.GroupResource().String()), cmp.Compare(x.Namespace, y.Namespace),
			cmp.Compare(x.Name, y.Name), cmp.Compare(x.ObjectID, y.ObjectID))
	})
	var kept []difference
	for _, d := range found {
		wanted, err := c.wanted(&d, allFields)
		if err != nil {
			return nil, err
		}
		if wanted {
			kept = append(kept, d)
		}
	}
	markRecreated(kept)
	return kept, nil
}

// wanted leaves out what could not be read at one of the instants, what is not selected, and what is different in bookkeeping only.
func (c *compared) wanted(d *difference, allFields bool) (bool, error) {
	if _, damaged := c.broken[d.object().ObjectID]; damaged {
		return false, nil
	}
	before, after, err := d.docs()
	if err != nil {
		return false, err
	}
	selected := before != nil && c.selects.matches(before) || after != nil && c.selects.matches(after)
	if !selected {
		return false, nil
	}
	if d.change == differenceChanged && !allFields && len(visible(changes(before, after))) == 0 {
		c.onlyBookkeeping++
		return false, nil
	}
	return true, nil
}

// markRecreated finds what was removed and added under one name. They stand side by side.
func markRecreated(sorted []difference) {
	for i := 1; i < len(sorted); i++ {
		a, b := &sorted[i-1], &sorted[i]
		x, y := a.object(), b.object()
		if x.Stream.GroupResource() == y.Stream.GroupResource() && x.Namespace == y.Namespace && x.Name == y.Name && a.change != b.change {
			a.recreated, b.recreated = true, true
		}
	}
}

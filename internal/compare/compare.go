package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/patch"
)

// A Comparison holds what is different between two instants. Of the objects of the first, it keeps the last version compressed until the
// second has been read; of those of the second, only what is different.
type Comparison struct {
	// OnlyBookkeeping is how many objects Result left out, because nothing but bookkeeping is different in them.
	OnlyBookkeeping int

	rec    *history.Record
	told   Hooks
	choice Choice

	mu     sync.Mutex // protects what follows
	before map[int64]*Side
	after  map[int64]*Side
	broken map[int64]*history.DamagedError
}

// Side is an object at one of the two instants.
type Side struct {
	history.Object // without Doc
	digest         [16]byte
	packed         []byte // s2
}

// A Choice says which objects count.
type Choice struct {
	// Has reports whether an object was asked for. It is called from several goroutines.
	Has func(resource schema.GroupResource, name string) bool
	// Selects reports whether an object is selected by what it is at one of the instants. It is called from several goroutines.
	Selects func(patch.Doc) bool
}

// Hooks get what a comparison has to tell while it goes on.
type Hooks struct {
	// Notes gets what is to be known of the record at one of the instants.
	Notes func([]history.Note)
	// Progress begins to tell how far a reading is, which has a title. end is called when it is over.
	Progress func(title string) (tell func(history.Progress), end func())
}

// New compares nothing yet: Read does. Only objects that the choice selects at either instant count.
func New(rec *history.Record, choice Choice, told Hooks) *Comparison {
	return &Comparison{rec: rec, told: told, choice: choice, before: map[int64]*Side{}, after: map[int64]*Side{}, broken: map[int64]*history.DamagedError{}}
}

func pack(o *history.Object) *Side {
	s := &Side{Object: *o, digest: patch.Digest(o.Doc), packed: s2.Encode(nil, o.Doc)}
	s.Doc = nil
	return s
}

func (s *Side) doc() (patch.Doc, error) {
	if s == nil {
		return nil, nil
	}
	return s2.Decode(nil, s.packed)
}

// Read compares the objects of a scope.
func (c *Comparison) Read(ctx context.Context, from, to history.Point, scope history.Scope) error {
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

func (c *Comparison) second(o history.Object) error {
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

func (c *Comparison) rebuild(ctx context.Context, point history.Point, scope history.Scope, emit func(history.Object) error) error {
	tell, end := c.told.Progress("rebuilding the cluster at " + point.Instant.String())
	defer end()
	stats, err := c.rec.Rebuild(ctx, point, scope, history.RebuildOptions{Damaged: c.noteDamage, Progress: tell}, func(o history.Object) error {
		if !c.choice.Has(o.Stream.GroupResource(), o.Name) {
			return nil
		}
		return emit(o)
	})
	if err != nil {
		return err
	}
	c.told.Notes(stats.Notes)
	return nil
}

func (c *Comparison) noteDamage(d *history.DamagedError) {
	if d.Stream != nil && !c.choice.Has(d.Stream.GroupResource(), d.Name) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken[d.ObjectID] = d
}

// Damage is what could not be compared.
func (c *Comparison) Damage() error {
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

// Difference is one object that is not the same at both instants.
type Difference struct {
	Change        string // added, removed, changed
	Recreated     bool
	Before, After *Side
}

// The outcome for an object.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Object is the object as far as it can be named at all.
func (d *Difference) Object() *history.Object {
	if d.After != nil {
		return &d.After.Object
	}
	return &d.Before.Object
}

// Docs are the object at both instants, nil where there was none.
func (d *Difference) Docs() (before, after patch.Doc, err error) {
	if before, err = d.Before.doc(); err == nil {
		after, err = d.After.doc()
	}
	return before, after, err
}

// Result gives the differences by resource, namespace and name.
func (c *Comparison) Result(allFields bool) ([]Difference, error) {
	var found []Difference
	for id, before := range c.before {
		d := Difference{Change: Removed, Before: before, After: c.after[id]}
		if d.After != nil {
			d.Change = Changed
		}
		found = append(found, d)
	}
	for id, after := range c.after {
		if c.before[id] == nil {
			found = append(found, Difference{Change: Added, After: after})
		}
	}
	slices.SortFunc(found, func(a, b Difference) int {
		x, y := a.Object(), b.Object()
		return cmp.Or(cmp.Compare(x.Stream.GroupResource().String(), y.Stream.GroupResource().String()), cmp.Compare(x.Namespace, y.Namespace),
			cmp.Compare(x.Name, y.Name), cmp.Compare(x.ObjectID, y.ObjectID))
	})
	kept, err := c.kept(found, allFields)
	if err != nil {
		return nil, err
	}
	markRecreated(kept)
	return kept, nil
}

// kept leaves out objects that could not be read at one of the instants or are not selected, and differences in bookkeeping
// only.
func (c *Comparison) kept(found []Difference, allFields bool) (kept []Difference, err error) {
	selected, wanted := make([]bool, len(found)), make([]bool, len(found))
	err = Each(found, func(i int, before, after patch.Doc) error {
		d := &found[i]
		_, damaged := c.broken[d.Object().ObjectID]
		selected[i] = !damaged && (before != nil && c.choice.Selects(before) || after != nil && c.choice.Selects(after))
		wanted[i] = selected[i] && (d.Change != Changed || allFields || len(field.Visible(field.Changes(before, after))) > 0)
		return nil
	})
	for i := range found {
		switch {
		case wanted[i]:
			kept = append(kept, found[i])
		case selected[i]:
			c.OnlyBookkeeping++
		}
	}
	return kept, err
}

// stretch is how many differences a goroutine takes at a time.
const stretch = 64

// Each looks at differences on as many goroutines as there are processors, each once and in no order. It gets the place of one,
// and the object at both instants. It ends with the first error.
func Each(all []Difference, look func(i int, before, after patch.Doc) error) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < len(all); from += stretch {
		group.Go(func() error {
			for i := from; i < min(from+stretch, len(all)); i++ {
				before, after, err := all[i].Docs()
				if err == nil {
					err = look(i, before, after)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// markRecreated finds what was removed and added under one name. They stand side by side.
func markRecreated(sorted []Difference) {
	for i := 1; i < len(sorted); i++ {
		a, b := &sorted[i-1], &sorted[i]
		x, y := a.Object(), b.Object()
		if x.Stream.GroupResource() == y.Stream.GroupResource() && x.Namespace == y.Namespace && x.Name == y.Name && a.Change != b.Change {
			a.Recreated, b.Recreated = true, true
		}
	}
}

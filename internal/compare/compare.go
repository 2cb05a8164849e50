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

// A Comparison holds the differences between two instants. It keeps the objects of the first instant compressed until it has
// read the second. It keeps only those objects of the second that are different.
type Comparison struct {
	// OnlyBookkeeping counts the objects that Result excluded, because only bookkeeping fields differ.
	OnlyBookkeeping int

	rec    *history.Record
	hooks  Hooks
	choice Choice

	mu     sync.Mutex // protects the fields below
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

// A Choice selects the objects that count.
type Choice struct {
	// Has reports whether the caller requested an object. Several goroutines call it.
	Has func(resource schema.GroupResource, name string) bool
	// Selects reports whether an object's content at one of the instants is selected. Several goroutines call it.
	Selects func(patch.Doc) bool
}

// Hooks receive notes and progress while a comparison runs.
type Hooks struct {
	// Notes receives the notes about the record at one of the instants.
	Notes func([]history.Note)
	// Progress starts the progress of one reading, which has a title. The Comparison calls update with the state, and end
	// when the reading is over.
	Progress func(title string) (update func(history.Progress), end func())
}

// New returns an empty Comparison; Read fills it. Only objects that the choice selects at either instant count.
func New(rec *history.Record, choice Choice, hooks Hooks) *Comparison {
	return &Comparison{rec: rec, hooks: hooks, choice: choice, before: map[int64]*Side{}, after: map[int64]*Side{}, broken: map[int64]*history.DamagedError{}}
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

// Read compares the objects of a scope at the two points.
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
	update, end := c.hooks.Progress("rebuilding the cluster at " + point.Instant.String())
	defer end()
	stats, err := c.rec.Rebuild(ctx, point, scope, history.RebuildOptions{Damaged: c.noteDamage, Progress: update}, func(o history.Object) error {
		if !c.choice.Has(o.Stream.GroupResource(), o.Name) {
			return nil
		}
		return emit(o)
	})
	if err != nil {
		return err
	}
	c.hooks.Notes(stats.Notes)
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

// Damage returns an error for each object that could not be compared, in the order of seq.
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

// Difference is one object that differs between the two instants.
type Difference struct {
	Change        string // added, removed, changed
	Recreated     bool
	Before, After *Side
}

// The values of Difference.Change.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Object returns the object at the second instant, or at the first if it was removed.
func (d *Difference) Object() *history.Object {
	if d.After != nil {
		return &d.After.Object
	}
	return &d.Before.Object
}

// Docs returns the object at both instants, nil if it did not exist at one.
func (d *Difference) Docs() (before, after patch.Doc, err error) {
	if before, err = d.Before.doc(); err == nil {
		after, err = d.After.doc()
	}
	return before, after, err
}

// Result returns the differences, sorted by resource, namespace and name.
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

// kept returns the differences that count. It excludes objects that could not be read at one of the instants, objects that
// are not selected, and differences of only bookkeeping fields.
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

// chunk is the number of differences that a goroutine handles at a time.
const chunk = 64

// Each calls look once for each difference, in no order, with the index of the difference and the object at both instants.
// It runs as many goroutines as there are processors. It returns the first error.
func Each(all []Difference, look func(i int, before, after patch.Doc) error) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < len(all); from += chunk {
		group.Go(func() error {
			for i := from; i < min(from+chunk, len(all)); i++ {
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

// markRecreated marks an object that was removed and added again under one name. Both differences are adjacent in the sorted
// list.
func markRecreated(sorted []Difference) {
	for i := 1; i < len(sorted); i++ {
		a, b := &sorted[i-1], &sorted[i]
		x, y := a.Object(), b.Object()
		if x.Stream.GroupResource() == y.Stream.GroupResource() && x.Namespace == y.Namespace && x.Name == y.Name && a.Change != b.Change {
			a.Recreated, b.Recreated = true, true
		}
	}
}

package diff

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/compare"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/folding"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/selector"
	"github.com/kuberewind/kuberewind/patch"
)

// filter selects the differences that diff shows.
type filter struct {
	paths, indices []string

	patterns []field.Pattern
	indexed  []selector.Index
	rules    folding.Rules
	folded   change.Counts
	seen     field.Seen // objects in which no pattern found a change
}

func (f *filter) addFlags(flags *pflag.FlagSet) {
	folding.AddFlags(flags)
	flags.StringArrayVar(&f.paths, "path", nil, "only differences at or below a path, such as spec.replicas or 'spec.containers[*].image'")
	flags.StringArrayVar(&f.indices, "index", nil, "only objects that an index holds under a value at one of the instants: name=value (namespace, label, owner, node, uid)")
}

// read parses the flags. person is true if a person reads the answer at a terminal.
func (f *filter) read(e *env.Env, cmd *cobra.Command, person bool) (err error) {
	if f.patterns, err = field.ParsePatterns(f.paths); err != nil {
		return err
	}
	if f.indexed, err = selector.ParseIndices(f.indices); err != nil {
		return err
	}
	f.rules, err = folding.Of(e, cmd, person)
	return err
}

// askedFor marks the types that the arguments name. The filter does not fold their differences for their type.
func (f *filter) askedFor(args []string, targets []resource.Target) {
	f.rules.Asked = map[schema.GroupResource]bool{}
	for _, t := range targets {
		f.rules.Asked[t.Resource.GroupResource()] = len(args) > 0
	}
}

// A shown is a difference that diff shows, with its shown changes.
type shown struct {
	compare.Difference
	changes []field.Change
	counted int // changes of the status that are not shown
}

// apply returns the shown differences, and counts the folded ones.
func (f *filter) apply(all []compare.Difference, allFields bool) ([]shown, error) {
	var kept []shown
	for _, d := range all {
		before, after, err := d.Docs()
		if err != nil {
			return nil, err
		}
		if !f.within(before) && !f.within(after) {
			continue
		}
		if s, ok := f.one(d, before, after, allFields); ok {
			kept = append(kept, s)
		}
	}
	return kept, nil
}

func (f *filter) one(d compare.Difference, before, after patch.Doc, allFields bool) (shown, bool) {
	s := shown{Difference: d, changes: changesOf(before, after, allFields)}
	if len(f.patterns) > 0 {
		s.changes = field.SelectAll(f.patterns, s.changes)
		if s.changes, _ = f.rules.Visible(change.Status, s.changes); len(s.changes) == 0 {
			f.seen.Add(before)
			f.seen.Add(after)
		}
		return s, len(s.changes) > 0
	}
	o := d.Object()
	class := f.rules.Class(change.Delta{
		Group: o.Stream.Group, Resource: o.Stream.Resource, Type: deltaTypes[d.Change], Before: before, Object: cmpDoc(after, before),
	}).Class
	all := len(s.changes)
	s.changes, s.counted = f.rules.Visible(class, s.changes)
	if f.rules.Folds(class) || len(s.changes) == 0 && all > 0 {
		f.folded.Add(class, o.Stream.Kind)
		return s, false
	}
	return s, true
}

var deltaTypes = map[string]delta.Type{compare.Added: delta.Added, compare.Removed: delta.Deleted, compare.Changed: delta.Updated}

// cmpDoc returns the first document that is not nil.
func cmpDoc(docs ...patch.Doc) patch.Doc {
	i := slices.IndexFunc(docs, func(d patch.Doc) bool { return d != nil })
	return docs[max(i, 0)]
}

func (f *filter) within(doc patch.Doc) bool {
	return doc != nil && !slices.ContainsFunc(f.indexed, func(i selector.Index) bool { return !i.Holds(doc) })
}

// more returns a text about the folded differences; "" if there are none.
func (f *filter) more() string {
	if f.folded.Total() == 0 {
		return ""
	}
	return fmt.Sprintf("%d more: %s; -v shows them", f.folded.Total(), f.folded.String())
}

// hints returns notes about paths that no object has, if diff shows no difference.
func (f *filter) hints(nothing bool) (texts []string) {
	if !nothing {
		return nil
	}
	for _, path := range f.paths {
		texts = append(texts, f.seen.Hint(path))
	}
	return texts
}

// changesOf returns the changes between two instants, without bookkeeping unless allFields is set.
func changesOf(before, after patch.Doc, allFields bool) []field.Change {
	if allFields {
		return field.Changes(before, after)
	}
	if before != nil && after != nil {
		return field.Visible(field.Changes(before, after))
	}
	if before != nil {
		before = field.WithoutBookkeeping(before)
	}
	if after != nil {
		after = field.WithoutBookkeeping(after)
	}
	return field.Changes(before, after)
}

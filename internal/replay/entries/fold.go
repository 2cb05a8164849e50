package entries

import (
	"path"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/field"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/words"
)

// A Fold makes entries of versions, and leaves out what was not asked for.
type Fold struct {
	Cluster  string
	Managers []string // patterns of path.Match
	Types    []cache.DeltaType
	Patterns []field.Pattern
	// AllFields keeps bookkeeping fields.
	AllFields bool
	// Diff adds a unified difference of YAML.
	Diff bool
	// QuietSync leaves out what was only found or stored again, and counts it.
	QuietSync bool
	Quieted   int
}

// EntryOf is what is shown of a version; nil if it was not asked for.
func (f *Fold) EntryOf(v *history.Version) *Entry {
	if len(f.Managers) > 0 && !slices.ContainsFunc(f.Managers, func(m string) bool {
		matched, _ := path.Match(m, v.Manager) // tried when it was read
		return matched
	}) {
		return nil
	}
	if v.Source == "resync" && !slices.Contains(f.Types, cache.Sync) {
		return nil // Nothing happened.
	}
	if f.QuietSync && v.Type == cache.Sync && v.Source == "list" {
		f.Quieted++
		return nil
	}
	all := f.changesOf(v)
	about := words.Summary(v)
	switch {
	case len(f.Patterns) > 0:
		var found []field.Change
		for _, p := range f.Patterns {
			for _, c := range p.SelectFrom(all) {
				if !slices.ContainsFunc(found, func(known field.Change) bool { return known.Op == c.Op && known.Path.String() == c.Path.String() }) {
					found = append(found, c)
				}
			}
		}
		if len(found) == 0 {
			return nil
		}
		all = found
	case !f.AllFields:
		shown := field.Visible(all)
		if about == "" && len(shown) == 0 {
			about = "nothing but " + fieldNames(all)
		}
		all = shown
	}
	e := newEntry(f.Cluster, v, about, all)
	if f.Diff {
		e.Diff = f.difference(v)
	}
	return e
}

// changesOf gives what a delta changed. The coming and the going of an object are changes of the object as a whole.
func (f *Fold) changesOf(v *history.Version) []field.Change {
	if v.Before == nil {
		doc := v.Doc
		if !f.AllFields && len(f.Patterns) == 0 {
			doc = field.WithoutBookkeeping(doc)
		}
		return field.Changes(nil, doc)
	}
	all := field.Changes(v.Before, v.Doc)
	if v.Type == cache.Deleted {
		gone := v.Doc
		if !f.AllFields && len(f.Patterns) == 0 {
			gone = field.WithoutBookkeeping(gone)
		}
		all = append(all, field.Change{Op: field.OpRemove, Old: gone})
	}
	return all
}

// fieldNames names what changed, each once: the resource version only if it is all.
func fieldNames(all []field.Change) string {
	var names []string
	for _, c := range all {
		name := c.Path[:min(2, len(c.Path))].String()
		if !slices.Contains(names, name) && (name != "metadata.resourceVersion" || len(all) == 1) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func (f *Fold) difference(v *history.Version) string {
	title := v.Stream.GroupResource().String() + "/" + output.ObjectName(v.Namespace, v.Name)
	if v.Type == cache.Deleted {
		return words.Unified(title, v.Doc, nil, "rv "+v.RV, "", f.AllFields)
	}
	before := "the version before"
	return words.Unified(title, v.Before, v.Doc, before, "rv "+v.RV, f.AllFields)
}

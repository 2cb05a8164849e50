package entries

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/replay/folding"
	"github.com/kuberewind/kuberewind/internal/replay/known"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/selector"
	"github.com/kuberewind/kuberewind/internal/replay/words"
	"github.com/kuberewind/kuberewind/internal/selection"
	"github.com/kuberewind/kuberewind/patch"
)

// A Fold converts versions to entries, and skips versions that the user did not request.
type Fold struct {
	Cluster  string
	Managers []string // patterns of path.Match; only proved managers match
	Types    []delta.Type
	Patterns []field.Pattern
	Selects  selection.Selector // matches the labels of the version or its predecessor
	Indices  []selector.Index   // all must hold the version, or all its predecessor
	// AllFields keeps bookkeeping fields.
	AllFields bool
	// Zone is the zone of the times in texts.
	Zone *time.Location
	// Diff adds a unified diff of YAML.
	Diff bool
	// QuietSync skips and counts versions that a first list found.
	QuietSync bool
	Quieted   int
	// Folding selects the versions that Folded only counts.
	Folding folding.Rules
	Folded  change.Counts
	// Seen holds paths of the first versions in which no pattern found a change.
	Seen field.Seen

	labels known.Labels // labels of versions that the selector did not match
}

// EntryOf returns the entry of a version; nil if the version was not requested, or was only counted.
func (f *Fold) EntryOf(v *history.Version) *Entry {
	if !f.asked(v) {
		return nil
	}
	if f.QuietSync && v.Type == delta.Sync && v.Source == delta.SourceList {
		f.Quieted++
		return nil
	}
	what := f.Folding.Class(change.Delta{
		Group: v.Stream.Group, Resource: v.Stream.Resource, Type: v.Type, Source: v.Source, Patch: v.Patch, Before: v.Before, Object: v.Doc,
	})
	if len(f.Patterns) > 0 {
		return f.selected(v, what)
	}
	all := f.changesOf(v)
	about := words.Summary(v, what, f.Zone)
	if !f.AllFields {
		shown := field.Visible(all)
		if about == "" && len(shown) == 0 {
			about = "nothing but " + fieldNames(all)
		}
		all = shown
	}
	visible, counted := f.Folding.Visible(what.Class, all)
	if f.Folding.Folds(what.Class) || len(visible) == 0 && len(all) > 0 && about == "" {
		f.Folded.Add(what.Class, v.Stream.Kind)
		return nil
	}
	if (what.Evicted || len(what.Waiting) > 0) && counted > 0 {
		counted-- // The text already says it.
	}
	e := f.entry(v, about, visible)
	e.Counted = counted
	e.Terminates = len(e.Shown) == 0 && !what.Evicted && words.Terminates(v)
	return e
}

// asked reports whether the user requested a version.
func (f *Fold) asked(v *history.Version) bool {
	if !f.within(v.Doc) && !f.within(v.Before) {
		return false
	}
	if len(f.Managers) > 0 && !slices.ContainsFunc(f.Managers, func(m string) bool {
		matched, _ := path.Match(m, v.Manager) // validated when the flag was parsed
		return matched
	}) {
		return false
	}
	if v.Source == delta.SourceResync && !slices.Contains(f.Types, delta.Sync) && !f.Folding.All() {
		return false // a resync shows no change
	}
	return true
}

// UnknownLabels returns notes about labels of the selector that no version had.
func (f *Fold) UnknownLabels() []string { return f.labels.Unknown(f.Selects) }

// within reports whether the selector and all indices match an object.
func (f *Fold) within(doc patch.Doc) bool {
	return doc != nil && f.labels.Matches(f.Selects, doc) &&
		!slices.ContainsFunc(f.Indices, func(i selector.Index) bool { return !i.Holds(doc) })
}

// selected returns the entry with the changes at the requested paths.
func (f *Fold) selected(v *history.Version, what change.Change) *Entry {
	all := f.changesOf(v)
	found := field.SelectAll(f.Patterns, all)
	if len(f.Types) == 0 || v.Type == delta.Updated {
		found = field.Elements(all, found)
	}
	if found, _ = f.Folding.Visible(change.Status, found); len(found) == 0 {
		f.Seen.Add(v.Doc)
		return nil
	}
	return f.entry(v, words.Summary(v, what, f.Zone), found)
}

func (f *Fold) entry(v *history.Version, about string, all []field.Change) *Entry {
	e := newEntry(f.Cluster, v, about, all)
	if f.Diff {
		e.Diff = f.difference(v)
	}
	return e
}

// More returns a text about the folded versions: "612 more: 380 Pod status, 232 Events; -v shows them". It returns "" if
// there are none.
func (f *Fold) More() string {
	total, what := f.Folded.Total(), f.Folded.String()
	switch {
	case f.Quieted > 0 && !f.Folding.Active:
		return fmt.Sprintf("%d objects existed before their recording began; --type Sync shows them", f.Quieted)
	case f.Quieted > 0:
		total += f.Quieted
		what = strings.TrimPrefix(fmt.Sprintf("%s, %d that existed before their recording began", what, f.Quieted), ", ")
	case total == 0:
		return ""
	}
	return fmt.Sprintf("%d more: %s; -v shows them", total, what)
}

// changesOf returns the changes of a delta. The first version and the deletion of an object are changes of the whole object.
func (f *Fold) changesOf(v *history.Version) []field.Change {
	if v.Before == nil {
		doc := v.Doc
		if !f.AllFields && len(f.Patterns) == 0 {
			doc = field.WithoutBookkeeping(doc)
		}
		return field.Changes(nil, doc)
	}
	all := field.Changes(v.Before, v.Doc)
	if v.Type == delta.Deleted {
		gone := v.Doc
		if !f.AllFields && len(f.Patterns) == 0 {
			gone = field.WithoutBookkeeping(gone)
		}
		all = append(all, field.Change{Op: field.OpRemove, Old: gone})
	}
	return all
}

// fieldNames returns the names of the changed fields, each once. It includes the resource version only if nothing else
// changed.
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
	if v.Type == delta.Deleted {
		return words.Unified(title, v.Doc, nil, "rv "+v.RV, "", f.AllFields)
	}
	before := "the version before"
	return words.Unified(title, v.Before, v.Doc, before, "rv "+v.RV, f.AllFields)
}

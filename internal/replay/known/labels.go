package known

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kuberewind/kuberewind/internal/mistyped"
	selects "github.com/kuberewind/kuberewind/internal/selection"
	"github.com/kuberewind/kuberewind/patch"
)

// Labels holds the labels of objects that a selector did not match. Unknown uses them to find mistyped labels. The zero
// value is empty.
type Labels struct {
	values  map[string]map[string]bool // by key
	words   int
	matched bool
}

// mostLabels is the maximum number of keys and values. With more, Unknown returns nothing, because the typed word may be one
// that was not kept.
const mostLabels = 10_000

// Matches reports whether the selector matches an object. If not, it keeps the object's labels.
func (l *Labels) Matches(s selects.Selector, doc patch.Doc) bool {
	if s.Matches(doc) {
		l.matched = true
		return true
	}
	if !s.EveryLabel() && l.words <= mostLabels {
		l.note(selects.StringsAt(doc, "/metadata/labels"))
	}
	return false
}

func (l *Labels) note(all map[string]string) {
	for key, value := range all {
		if l.values == nil {
			l.values = map[string]map[string]bool{}
		}
		if l.values[key] == nil {
			l.values[key] = map[string]bool{}
		}
		if !l.values[key][value] {
			l.values[key][value] = true
			l.words++
		}
	}
}

// Unknown returns notes about keys and values of a selector that no object had, with similar words. It returns nothing if
// the selector matched an object, or if no object had labels.
func (l *Labels) Unknown(s selects.Selector) (texts []string) {
	if l.matched || l.words == 0 || l.words > mostLabels {
		return nil
	}
	for _, r := range s.Labels() {
		if text := l.unknown(r); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// unknown returns the note for one requirement, if the requirement needs a label.
func (l *Labels) unknown(r labels.Requirement) string {
	switch r.Operator() {
	case selection.Exists, selection.Equals, selection.DoubleEquals, selection.In:
	default:
		return ""
	}
	if l.values[r.Key()] == nil {
		return meant(fmt.Sprintf("no object in this scope has a label %q", r.Key()), mistyped.Suggest(r.Key(), slices.Collect(maps.Keys(l.values))))
	}
	if r.Operator() == selection.Exists || r.Values().Len() != 1 {
		return ""
	}
	value := r.Values().UnsortedList()[0]
	if l.values[r.Key()][value] {
		return ""
	}
	return meant(fmt.Sprintf("no object in this scope has the label %s=%s", r.Key(), value), mistyped.Suggest(value, slices.Collect(maps.Keys(l.values[r.Key()]))))
}

func meant(text, like string) string {
	if like == "" {
		return text
	}
	return fmt.Sprintf("%s; did you mean %q?", text, like)
}

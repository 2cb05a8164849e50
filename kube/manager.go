package kube

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/patch"
)

// Manager is the field manager whose managedFields entry is the newest, and the
// subresource through which it wrote; of entries of one second, the last. Both are
// empty if the object has no entry with a time.
func (o *Object) Manager() (name, subresource string) {
	var newest time.Time
	for i := range o.ManagedFields {
		entry := &o.ManagedFields[i]
		if entry.Time == nil || entry.Time.IsZero() || entry.Time.Time.Before(newest) {
			continue
		}
		newest = entry.Time.Time
		name, subresource = entry.Manager, entry.Subresource
	}
	return name, subresource
}

// ManagerAfter is Manager for an object whose version before is known. Times alone
// do not always tell: they have whole seconds, and an entry that was written through
// the subresource scale has none. Then the entry counts that the write has
// changed or, if it has changed none, that owns what was changed. before is asked
// for only if it is needed.
func (o *Object) ManagerAfter(before func() (patch.Doc, error)) (name, subresource string) {
	name, subresource = o.Manager()
	if !o.timesAreAmbiguous() {
		return name, subresource
	}
	was, err := before()
	if err != nil {
		return name, subresource
	}
	is, err := patch.Canonical(o.text())
	if err != nil {
		return name, subresource
	}
	if writer := writerOf(was, is); writer != nil {
		return writer.Manager, writer.Subresource
	}
	return name, subresource
}

// timesAreAmbiguous reports whether an entry has no time, or two have the newest.
func (o *Object) timesAreAmbiguous() bool {
	var newest time.Time
	twice := false
	for i := range o.ManagedFields {
		switch at := o.ManagedFields[i].Time; {
		case at == nil || at.IsZero():
			return true
		case at.Time.After(newest):
			newest, twice = at.Time, false
		case at.Time.Equal(newest):
			twice = true
		}
	}
	return twice
}

// A manager is an entry of managedFields.
type manager struct {
	Manager     string         `json:"manager"`
	Operation   string         `json:"operation"`
	APIVersion  string         `json:"apiVersion"`
	Subresource string         `json:"subresource"`
	Time        *metav1.Time   `json:"time"`
	FieldsV1    map[string]any `json:"fieldsV1"`
}

func managersOf(doc patch.Doc) (entries []*manager) {
	text, ok := patch.Get(doc, "/metadata/managedFields")
	if !ok || json.Unmarshal(text, &entries) != nil {
		return nil
	}
	return slices.DeleteFunc(entries, func(m *manager) bool { return m == nil })
}

// writerOf is the entry of whoever made a version of the one before, nil if nothing
// tells.
func writerOf(was, is patch.Doc) *manager {
	before, after := managersOf(was), managersOf(is)
	if len(before) == 0 {
		return nil
	}
	candidates := changedEntries(before, after)
	if len(candidates) == 0 {
		candidates = newestEntries(after)
	}
	if len(candidates) < 2 {
		return first(candidates)
	}
	paths := changedPaths(was, is)
	var writer *manager
	most := -1
	for _, c := range candidates {
		owned := 0
		for _, path := range paths {
			if owns(c.FieldsV1, path) || owns(fieldsBefore(before, c), path) {
				owned++
			}
		}
		if owned > most || owned == most && c.newerThan(writer) {
			writer, most = c, owned
		}
	}
	return writer
}

func first(entries []*manager) *manager {
	if len(entries) == 0 {
		return nil
	}
	return entries[0]
}

// changedEntries are those that a version has changed, but for those that have only
// lost fields to the writer: whoever writes gets a new time.
func changedEntries(before, after []*manager) (changed []*manager) {
	for _, entry := range after {
		old := find(before, entry)
		if old == nil || !entry.Time.Equal(old.Time) || fields(entry.FieldsV1) > fields(old.FieldsV1) {
			changed = append(changed, entry)
		}
	}
	return changed
}

// newestEntries are those that may have been written last: of the newest second, and
// without a time.
func newestEntries(entries []*manager) (newest []*manager) {
	var last *metav1.Time
	for _, entry := range entries {
		if last == nil || last.Before(entry.Time) {
			last = entry.Time
		}
	}
	for _, entry := range entries {
		if entry.Time.IsZero() || entry.Time.Equal(last) {
			newest = append(newest, entry)
		}
	}
	return newest
}

// find looks for the entry of the same manager.
func find(entries []*manager, m *manager) *manager {
	for _, e := range entries {
		if e.Manager == m.Manager && e.Operation == m.Operation && e.APIVersion == m.APIVersion && e.Subresource == m.Subresource {
			return e
		}
	}
	return nil
}

func fieldsBefore(before []*manager, m *manager) map[string]any {
	if old := find(before, m); old != nil {
		return old.FieldsV1
	}
	return nil
}

// fields counts what a set of fields holds.
func fields(set map[string]any) int {
	n := len(set)
	for _, below := range set {
		if below, ok := below.(map[string]any); ok {
			n += fields(below)
		}
	}
	return n
}

// newerThan takes what has no time for newer: it may be.
func (m *manager) newerThan(other *manager) bool {
	return other == nil || m.Time.IsZero() || !other.Time.IsZero() && !m.Time.Before(other.Time)
}

// changedPaths are the paths that somebody has changed, as the segments of JSON
// pointers.
func changedPaths(was, is patch.Doc) (paths [][]string) {
	text, err := patch.Diff(was, is)
	var steps []struct {
		Path       string
		Old, Value any
	}
	if err != nil || json.Unmarshal(text, &steps) != nil {
		return nil
	}
	for _, step := range steps {
		path := strings.Split(step.Path, "/")[1:]
		for i := range path {
			path[i] = unescape.Replace(path[i])
		}
		paths = appendChanged(paths, path, step.Old, step.Value)
	}
	return slices.DeleteFunc(paths, func(path []string) bool {
		return len(path) > 1 && path[0] == "metadata" && slices.Contains(notWritten, path[1])
	})
}

// appendChanged goes into objects that a patch replaces whole because they are small.
func appendChanged(paths [][]string, path []string, was, is any) [][]string {
	before, ok1 := was.(map[string]any)
	after, ok2 := is.(map[string]any)
	if !ok1 || !ok2 {
		return append(paths, path)
	}
	for key, value := range after {
		if old, had := before[key]; !had || !reflect.DeepEqual(old, value) {
			paths = appendChanged(paths, append(slices.Clone(path), key), old, value)
		}
	}
	for key := range before {
		if _, has := after[key]; !has {
			paths = append(paths, append(slices.Clone(path), key))
		}
	}
	return paths
}

// notWritten is the metadata that the server changes by itself.
var notWritten = []string{"managedFields", "resourceVersion", "generation"}

// unescape gives a key of its segment of a JSON pointer (RFC 6901).
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// owns reports whether a set of fields, in the form of FieldsV1, holds a path or
// something below it. Which element of a list a position is, the path does not say:
// any will do.
func owns(set map[string]any, path []string) bool {
	if set == nil {
		return false
	}
	if len(path) == 0 || len(set) == 0 {
		return true
	}
	if below, ok := set["f:"+path[0]]; ok {
		below, ok := below.(map[string]any)
		return ok && owns(below, path[1:])
	}
	for key, below := range set {
		if strings.HasPrefix(key, "v:") {
			return true
		}
		if below, ok := below.(map[string]any); ok && strings.HasPrefix(key, "k:") && owns(below, path[1:]) {
			return true
		}
	}
	return false
}

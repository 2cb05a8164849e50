package evidence

import (
	"bytes"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/patch"
)

// An entry is an entry of managedFields. A missing member is nil or zero.
type entry struct {
	name, operation, version, subresource patch.Doc // strings
	written                               time.Time
	fields                                patch.Doc // fieldsV1
	set                                   *fieldSet // of fields; read when first needed
}

func entriesOf(doc patch.Doc) []entry {
	list, _ := patch.Get(doc, managedFields)
	entries := make([]entry, 0, 8)
	for _, text := range patch.Members(list) {
		if isObject(text) {
			entries = append(entries, readEntry(text))
		}
	}
	return entries
}

func readEntry(text patch.Doc) (e entry) {
	for key, value := range patch.Members(text) {
		switch string(key) {
		case "manager":
			e.name = value
		case "operation":
			e.operation = value
		case "apiVersion":
			e.version = value
		case "subresource":
			e.subresource = value
		case "time":
			if e.written.UnmarshalJSON(value) != nil {
				e.written = time.Time{}
			}
		case "fieldsV1":
			e.fields = value
		}
	}
	return e
}

// textOf returns the text of a JSON string, or "" for another value.
func textOf(value patch.Doc) string {
	text, _ := patch.Unquote(value)
	return string(text)
}

func (e *entry) proved(how Evidence) Verdict {
	name := textOf(e.name)
	if name == "" {
		return unproved
	}
	return Verdict{Manager: name, Subresource: textOf(e.subresource), Evidence: how}
}

// ofServer reports whether the API server made the entry by itself.
func (e *entry) ofServer() bool {
	return string(e.name) == `"before-first-apply"` || string(e.name) == `"ancient-changes"`
}

func (e *entry) applied() bool { return string(e.operation) == `"Apply"` }

// same reports whether the server treats both as one entry.
func (e *entry) same(other *entry) bool {
	return bytes.Equal(e.name, other.name) && bytes.Equal(e.operation, other.operation) &&
		bytes.Equal(e.version, other.version) && bytes.Equal(e.subresource, other.subresource)
}

// matching returns the entries with the same key as e. A client of the subresource scale can make two entries with one key:
// one with a time, one without.
func matching(entries []entry, e *entry) (found []*entry) {
	for i := range entries {
		if e.same(&entries[i]) {
			found = append(found, &entries[i])
		}
	}
	return found
}

// among reports whether the entry equals one of these.
func (e *entry) among(old []*entry) bool {
	return slices.ContainsFunc(old, func(o *entry) bool { return e.written.Equal(o.written) && bytes.Equal(e.fields, o.fields) })
}

// later reports whether the entry has a later time than all of these.
func (e *entry) later(old []*entry) bool {
	return !slices.ContainsFunc(old, func(o *entry) bool { return !e.written.After(o.written) })
}

// newest returns the latest time of the entries, or zero.
func newest(entries []entry) (last time.Time) {
	for i := range entries {
		if entries[i].written.After(last) {
			last = entries[i].written
		}
	}
	return last
}

func (e *entry) owns(p path) bool {
	if e.set == nil {
		e.set = new(fieldSet)
		e.set.add(e.fields)
	}
	return e.set.owns(p)
}

func (e *entry) ownsAll(paths []path) bool {
	return !slices.ContainsFunc(paths, func(p path) bool { return !e.owns(p) })
}

func (e *entry) ownsAny(paths []path) bool { return slices.ContainsFunc(paths, e.owns) }

// took reports whether the entry owns one of the paths that no old entry owned.
func (e *entry) took(old []*entry, paths []path) bool {
	return slices.ContainsFunc(paths, func(p path) bool {
		return e.owns(p) && !slices.ContainsFunc(old, func(o *entry) bool { return o.owns(p) })
	})
}

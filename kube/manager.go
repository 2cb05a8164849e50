package kube

import (
	"bytes"
	"time"

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

// ManagerAfter is Manager for an object whose version before is known, and the patch
// (RFC 6902, canonical) that makes of it the canonical text of this one, or nil if
// there is none. The resource version may be left out of it. Times alone do not always
// tell: they have whole seconds, and an entry that was written through the subresource
// scale has none. Then the entry counts that the write has changed or, if it has
// changed none, that owns what was changed.
func (o *Object) ManagerAfter(before patch.Doc, change []byte) (name, subresource string) {
	if o.doc == nil || change == nil || !o.timesAreAmbiguous() {
		return o.Manager()
	}
	if writer := writerOf(before, o.doc, change); writer != nil {
		return textOf(writer.name), textOf(writer.subresource)
	}
	return o.Manager()
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

// A manager is an entry of managedFields. What is missing in it is nil or zero.
type manager struct {
	name, operation, version, subresource patch.Doc // strings
	written                               time.Time
	fields                                patch.Doc // fieldsV1
}

func managersOf(doc patch.Doc) (entries []manager) {
	list, _ := patch.Get(doc, managedFieldsPath)
	for _, entry := range patch.Members(list) {
		if entry[0] == '{' {
			entries = append(entries, readManager(entry))
		}
	}
	return entries
}

const managedFieldsPath = "/metadata/managedFields"

func readManager(entry patch.Doc) (m manager) {
	for key, value := range patch.Members(entry) {
		switch string(key) {
		case "manager":
			m.name = value
		case "operation":
			m.operation = value
		case "apiVersion":
			m.version = value
		case "subresource":
			m.subresource = value
		case "time":
			if m.written.UnmarshalJSON(value) != nil {
				m.written = time.Time{}
			}
		case "fieldsV1":
			m.fields = value
		}
	}
	return m
}

// textOf is the text of a string, empty for what is none.
func textOf(value patch.Doc) string {
	text, _ := patch.Unquote(value)
	return string(text)
}

// writerOf is the entry of whoever made a version of the one before, nil if nothing
// tells.
func writerOf(was, is patch.Doc, change []byte) *manager {
	after := managersOf(is)
	before := after
	if changes(change, managedFieldsPath) {
		before = managersOf(was)
	}
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
	return mostConcerned(candidates, before, changedPaths(change))
}

func first(entries []*manager) *manager {
	if len(entries) == 0 {
		return nil
	}
	return entries[0]
}

// mostConcerned is the entry that owns the most of what was changed, now or before; of
// several, the newest.
func mostConcerned(candidates []*manager, before []manager, paths []fieldPath) (writer *manager) {
	most := -1
	for _, c := range candidates {
		owned, is, was := 0, (*fieldSet)(nil).with(c.fields), (*fieldSet)(nil).with(fieldsBefore(before, c))
		for _, path := range paths {
			if is.owns(path) || was.owns(path) {
				owned++
			}
		}
		if owned > most || owned == most && c.newerThan(writer) {
			writer, most = c, owned
		}
	}
	return writer
}

// changedEntries are those that a version has changed, but for those that have only
// lost fields to the writer: whoever writes gets a new time.
func changedEntries(before, after []manager) (changed []*manager) {
	for i := range after {
		entry := &after[i]
		old := find(before, entry)
		if old == nil || !entry.written.Equal(old.written) || !bytes.Equal(entry.fields, old.fields) && fields(entry.fields) > fields(old.fields) {
			changed = append(changed, entry)
		}
	}
	return changed
}

// newestEntries are those that may have been written last: of the newest second, and
// without a time.
func newestEntries(entries []manager) (newest []*manager) {
	var last time.Time
	for i := range entries {
		if entries[i].written.After(last) {
			last = entries[i].written
		}
	}
	for i := range entries {
		if at := entries[i].written; at.IsZero() || at.Equal(last) {
			newest = append(newest, &entries[i])
		}
	}
	return newest
}

// find looks for the entry of the same manager.
func find(entries []manager, m *manager) *manager {
	for i := range entries {
		e := &entries[i]
		if bytes.Equal(e.name, m.name) && bytes.Equal(e.operation, m.operation) && bytes.Equal(e.version, m.version) && bytes.Equal(e.subresource, m.subresource) {
			return e
		}
	}
	return nil
}

func fieldsBefore(before []manager, m *manager) patch.Doc {
	if old := find(before, m); old != nil {
		return old.fields
	}
	return nil
}

// newerThan takes what has no time for newer: it may be.
func (m *manager) newerThan(other *manager) bool {
	return other == nil || m.written.IsZero() || !other.written.IsZero() && !m.written.Before(other.written)
}

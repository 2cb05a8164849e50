package kube

import (
	"bytes"
	"encoding/json"
	"slices"
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
// changed. before is asked for only if it is needed.
func (o *Object) ManagerAfter(before func() (patch.Doc, error)) (name, subresource string) {
	name, subresource = o.Manager()
	if !o.timesAreAmbiguous() {
		return name, subresource
	}
	doc, err := before()
	if err != nil {
		return name, subresource
	}
	was, is := managersOf(doc), managersOf(o.text())
	if len(was.entries) == 0 || len(is.entries) == 0 {
		return name, subresource
	}
	if writer := is.writerAfter(was); writer != nil {
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

// managers is what a text says of who wrote it.
type managers struct {
	generation int64
	entries    []manager
}

type manager struct {
	Manager     string          `json:"manager"`
	Operation   string          `json:"operation"`
	APIVersion  string          `json:"apiVersion"`
	Subresource string          `json:"subresource"`
	Time        *metav1.Time    `json:"time"`
	FieldsV1    json.RawMessage `json:"fieldsV1"`
}

func managersOf(text []byte) managers {
	var partial struct {
		Metadata struct {
			Generation    int64     `json:"generation"`
			ManagedFields []manager `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(text, &partial); err != nil {
		return managers{}
	}
	return managers{partial.Metadata.Generation, partial.Metadata.ManagedFields}
}

// writerAfter is the entry of whoever made this version of the one before, nil if
// nothing tells.
func (m managers) writerAfter(before managers) *manager {
	var writer, untimed *manager
	changed, untimedEntries := false, 0
	for i := range m.entries {
		entry := &m.entries[i]
		if entry.Time.IsZero() {
			untimed = entry
			untimedEntries++
		}
		at := slices.IndexFunc(before.entries, entry.isOf)
		if at >= 0 && entry.equal(&before.entries[at]) {
			continue
		}
		changed = true
		// Whoever writes gets a new time. With the time it had, an entry has only lost fields to the writer, or its manager wrote
		// twice within a second.
		if at >= 0 && entry.Time.Equal(before.entries[at].Time) && len(entry.FieldsV1) < len(before.entries[at].FieldsV1) {
			continue
		}
		if writer == nil || entry.newerThan(writer) {
			writer = entry
		}
	}
	// A second write through scale changes no entry at all, but the specification.
	if !changed && untimedEntries == 1 && m.generation != before.generation {
		return untimed
	}
	return writer
}

// isOf reports whether two entries are of one manager, which may have several.
func (m *manager) isOf(other manager) bool {
	return m.Manager == other.Manager && m.Operation == other.Operation && m.APIVersion == other.APIVersion && m.Subresource == other.Subresource
}

func (m *manager) equal(other *manager) bool {
	return m.Time.Equal(other.Time) && bytes.Equal(m.FieldsV1, other.FieldsV1)
}

// newerThan takes what has no time for newer, because it was seen to have changed.
func (m *manager) newerThan(other *manager) bool {
	return m.Time.IsZero() || !other.Time.IsZero() && !m.Time.Before(other.Time)
}

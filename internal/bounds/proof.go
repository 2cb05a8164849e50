package bounds

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/patch"
)

// Created returns the proved time of a first version that came from a watch: its creationTimestamp. It returns zero if there
// is none.
func Created(doc patch.Doc) time.Time { return read(doc).CreationTimestamp.UTC() }

// Changed returns the proved time of a version that came from a watch directly after another version: the newest time that
// it set. It returns zero if there is none.
func Changed(before, after patch.Doc) time.Time {
	old, now := read(before), read(after)
	proved := now.newest()
	if !proved.After(old.newest()) {
		proved = time.Time{} // A client that applies a stale file can restore an earlier time.
	}
	if old.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
		proved = times.Later(proved, now.requested())
	}
	return proved.UTC()
}

// metadata holds the fields that prove a time. The type is hand-written, because decoding ObjectMeta would also decode each
// managed field.
type metadata struct {
	CreationTimestamp          metav1.Time
	DeletionTimestamp          *metav1.Time
	DeletionGracePeriodSeconds int64
	ManagedFields              []struct{ Time metav1.Time }
}

// read decodes the metadata of doc. If the metadata is malformed, read returns the zero value, which proves nothing.
func read(doc patch.Doc) (m metadata) {
	text, ok := patch.Get(doc, "/metadata")
	if !ok || json.Unmarshal(text, &m) != nil {
		return metadata{}
	}
	return m
}

// newest returns the latest time of the managed fields, or the creation time if it is later or there are no managed fields.
func (m *metadata) newest() time.Time {
	newest := m.CreationTimestamp.Time
	for i := range m.ManagedFields {
		newest = times.Later(newest, m.ManagedFields[i].Time.Time)
	}
	return newest
}

// requested returns the time of the delete request: deletionTimestamp is later by the grace period.
func (m *metadata) requested() time.Time {
	return m.DeletionTimestamp.Add(-time.Duration(m.DeletionGracePeriodSeconds) * time.Second)
}

package bounds

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/patch"
)

// Created is the proof of a first version that a watch brought: its creationTimestamp. It is zero if there is none.
func Created(doc patch.Doc) time.Time { return read(doc).CreationTimestamp.UTC() }

// Changed is the proof of a version that a watch brought right after another: the newest time that it set. It is zero if there is none.
func Changed(before, after patch.Doc) time.Time {
	old, now := read(before), read(after)
	proved := now.newest()
	if !proved.After(old.newest()) {
		proved = time.Time{} // A stale file may put back an earlier time.
	}
	if old.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
		proved = times.Later(proved, now.requested())
	}
	return proved.UTC()
}

// metadata is what says when something happened. A hand-written type: ObjectMeta would read the fields of each entry too.
type metadata struct {
	CreationTimestamp          metav1.Time
	DeletionTimestamp          *metav1.Time
	DeletionGracePeriodSeconds int64
	ManagedFields              []struct{ Time metav1.Time }
}

// read gives what can be read: an object that is not as Kubernetes makes them proves nothing.
func read(doc patch.Doc) (m metadata) {
	text, ok := patch.Get(doc, "/metadata")
	if !ok || json.Unmarshal(text, &m) != nil {
		return metadata{}
	}
	return m
}

// newest is the latest time of an entry; creation counts, because an object without entries has that.
func (m *metadata) newest() time.Time {
	newest := m.CreationTimestamp.Time
	for i := range m.ManagedFields {
		newest = times.Later(newest, m.ManagedFields[i].Time.Time)
	}
	return newest
}

// requested is when the object was asked to end: deletionTimestamp lies in the future by the grace period.
func (m *metadata) requested() time.Time {
	return m.DeletionTimestamp.Add(-time.Duration(m.DeletionGracePeriodSeconds) * time.Second)
}

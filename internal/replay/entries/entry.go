package entries

import (
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/words"
)

// Entry is one delta of the log. Its JSON form is public: the help of log documents it.
type Entry struct {
	Cluster string `json:"cluster"`
	Seq     int64  `json:"seq"`
	Times
	Type            delta.Type   `json:"type"`
	Source          delta.Source `json:"source"`
	Group           string       `json:"group"`
	Version         string       `json:"version"`
	Resource        string       `json:"resource"`
	Kind            string       `json:"kind"`
	Namespace       string       `json:"namespace"`
	Name            string       `json:"name"`
	UID             string       `json:"uid"`
	ResourceVersion string       `json:"resourceVersion"`
	Manager         string       `json:"manager"`
	Subresource     string       `json:"subresource"`
	ManagerEvidence string       `json:"managerEvidence"`
	ManagerHint     string       `json:"managerHint,omitempty"`
	LastManager     *LastManager `json:"lastManager,omitempty"`
	Changes         []field.JSON `json:"changes"`
	Diff            string       `json:"diff,omitempty"`

	About string         `json:"-"` // facts that the changes do not show
	Shown []field.Change `json:"-"` // the form for people

	Counted int `json:"-"` // changes of the status that are not shown

	// Terminates is true if the delta is only a step of the deletion of the object.
	Terminates bool `json:"-"`

	Owner Owner `json:"-"` // zero if no controller has the object
}

// Times are when a delta was observed, and when it occurred as far as that is known.
type Times struct {
	ObservedAt    time.Time `json:"observedAt"`
	OccurredAt    time.Time `json:"occurredAt"`
	Estimated     bool      `json:"estimated"`
	NotBefore     time.Time `json:"notBefore,omitzero"` // of an estimate
	NotAfter      time.Time `json:"notAfter,omitzero"`
	Contradictory bool      `json:"contradictory,omitempty"` // clocks of servers contradict the order
}

func newEntry(cluster string, v *history.Version, about string, all []field.Change) *Entry {
	return &Entry{
		Cluster: cluster, Seq: v.Seq, Times: Times{ObservedAt: v.ObservedAt, OccurredAt: v.OccurredAt, Estimated: !v.ObservedAt.Equal(v.OccurredAt)},
		Type: v.Type, Source: v.Source, Group: v.Stream.Group, Version: resource.VersionOnly(v.Version), Resource: v.Stream.Resource, Kind: v.Stream.Kind,
		Namespace: v.Namespace, Name: v.Name, UID: v.UID, ResourceVersion: v.RV, Manager: v.Manager, Subresource: v.Subresource, ManagerEvidence: v.Evidence, ManagerHint: v.ManagerHint,
		Changes: field.JSONOf(all), About: about, Shown: words.NotInSummary(v, field.Expanded(all)),
		Owner: ownerOf(v.Doc),
	}
}

// Happened sets estimated times from the order of resource versions.
func (t *Times) Happened(span history.Span) {
	if t.Estimated {
		t.OccurredAt, t.NotBefore, t.NotAfter, t.Contradictory = span.Estimate, span.NotBefore, span.NotAfter, span.Contradictory
	}
}

// LastManager is the last proved writer of a deleted life. Another client may have deleted the object.
type LastManager struct {
	Manager       string    `json:"manager"`
	Subresource   string    `json:"subresource"`
	Seq           int64     `json:"seq"`
	OccurredAt    time.Time `json:"occurredAt"`
	Estimated     bool      `json:"estimated"`
	Contradictory bool      `json:"contradictory,omitempty"`
}

// NewLastManager returns a writer with its time from the order of resource versions.
func NewLastManager(w *history.Writer, span history.Span) *LastManager {
	return &LastManager{
		Manager: w.Manager, Subresource: w.Subresource, Seq: w.Seq, OccurredAt: span.Estimate, Estimated: !w.ObservedAt.Equal(w.OccurredAt), Contradictory: span.Contradictory,
	}
}

// Remark is a line between the deltas: a gap, a pause, a damaged row.
type Remark struct {
	Kind     string    `json:"kind"` // gap, pause, began, damaged, missing_day
	Group    string    `json:"group,omitempty"`
	Resource string    `json:"resource,omitempty"`
	From     time.Time `json:"from,omitzero"`
	To       time.Time `json:"to,omitzero"`
	Seq      int64     `json:"seq,omitempty"`
	Text     string    `json:"text"`
}

package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/view"
	"github.com/kuberewind/kuberewind/internal/version"
)

// A Manifest describes a snapshot.
type Manifest struct {
	Cluster    string            `json:"cluster"`
	ClusterUID string            `json:"clusterUID"`
	Instant    string            `json:"instant"`
	Time       time.Time         `json:"time"`
	Seq        int64             `json:"seq"`
	RV         string            `json:"resourceVersion,omitempty"`
	Namespace  string            `json:"namespace,omitempty"`
	Notes      []string          `json:"notes,omitempty"`
	Incomplete []manifestStretch `json:"incomplete,omitempty"`
	Damaged    []string          `json:"damaged,omitempty"`
	Unwritten  []string          `json:"unwritten,omitempty"` // objects that YAML cannot represent, and why
	Replaced   []string          `json:"replaced,omitempty"`  // notes about texts in which U+FFFD replaces parts that YAML cannot write
	Counts
	MadeBy string `json:"madeBy"`
}

// Counts are the numbers of objects of a snapshot.
type Counts struct {
	HashedSecrets int            `json:"hashedSecrets,omitempty"`
	LeftOut       map[string]int `json:"leftOut,omitempty"` // by the reason
	Objects       int            `json:"objects,omitempty"`
	Resources     map[string]int `json:"resources,omitempty"`
}

// A manifestStretch is a time range around the instant in which the record of a resource is not complete.
type manifestStretch struct {
	Resource  string      `json:"resource"`
	Namespace string      `json:"namespace,omitempty"`
	Cause     delta.Cause `json:"cause,omitempty"`
	Detail    string      `json:"detail,omitempty"`
	From      time.Time   `json:"from,omitzero"`
	To        time.Time   `json:"to,omitzero"`
}

func newManifest(ctx context.Context, v *view.View, targets []resource.Target, namespace string) (*Manifest, error) {
	cluster := v.Rec.Cluster()
	m := &Manifest{
		Cluster: cluster.Name, ClusterUID: cluster.UID, Instant: v.Point.Instant.String(), Time: v.Point.Time.UTC(), Seq: v.Point.Seq, RV: v.Point.RV,
		Namespace: namespace, Counts: Counts{LeftOut: map[string]int{}, Resources: map[string]int{}}, MadeBy: env.ProgramName + " " + version.String(),
	}
	for _, n := range v.Point.Notes {
		m.Notes = append(m.Notes, n.Text)
	}
	for _, resource := range v.Objects.Resources() {
		// Count all objects here. The snapshot counts the written ones again, if it skips some.
		m.Resources[resource.String()] = v.Objects.Resource(resource).Len()
		m.Objects += m.Resources[resource.String()]
	}
	m.Damaged = v.DamagedTexts()
	coverage, err := v.Rec.Completeness().Coverage(ctx, history.Scope{Streams: resource.StreamsOf(targets, namespace), Namespace: namespace})
	if err != nil {
		return nil, err
	}
	for _, c := range coverage {
		at := v.Point.Time
		if c.Complete || at.Before(c.From) || !c.To.IsZero() && !at.Before(c.To) {
			continue
		}
		m.Incomplete = append(m.Incomplete, manifestStretch{
			Resource: schema.GroupResource{Group: c.Group, Resource: c.Resource}.String(), Namespace: c.Scope, Cause: c.Cause, Detail: c.Detail, From: c.From, To: c.To,
		})
	}
	return m, nil
}

// text returns the manifest as a file.
func (m *Manifest) text() ([]byte, error) {
	var b bytes.Buffer
	err := output.WriteJSON(&b, m, true)
	return b.Bytes(), err
}

// recount starts the count of written objects at zero.
func (c *Counts) recount() { c.Objects, c.Resources = 0, map[string]int{} }

func (c *Counts) count(resource schema.GroupResource) {
	c.Objects++
	c.Resources[resource.String()]++
}

// skipped returns the numbers of skipped objects with the reasons, for a person.
func (c *Counts) skipped() []string {
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(c.LeftOut)) {
		lines = append(lines, fmt.Sprintf("%d × %s", c.LeftOut[reason], reason))
	}
	return lines
}

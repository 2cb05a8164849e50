package replay

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/version"
)

// A manifest says what a snapshot is of.
type manifest struct {
	Cluster       string            `json:"cluster"`
	ClusterUID    string            `json:"clusterUID"`
	Instant       string            `json:"instant"`
	Time          time.Time         `json:"time"`
	Seq           int64             `json:"seq"`
	RV            string            `json:"resourceVersion,omitempty"`
	Namespace     string            `json:"namespace,omitempty"`
	Notes         []string          `json:"notes,omitempty"`
	Incomplete    []manifestStretch `json:"incomplete,omitempty"`
	Damaged       []string          `json:"damaged,omitempty"`
	Unwritten     []string          `json:"unwritten,omitempty"` // objects that have no form in YAML, and why
	Replaced      []string          `json:"replaced,omitempty"`  // texts in which U+FFFD stands for what YAML cannot write
	HashedSecrets int               `json:"hashedSecrets,omitempty"`
	LeftOut       map[string]int    `json:"leftOut,omitempty"`
	Objects       int               `json:"objects,omitempty"`
	Resources     map[string]int    `json:"resources,omitempty"`
	MadeBy        string            `json:"madeBy"`
}

// A manifestStretch is where a resource was not completely recorded at the instant.
type manifestStretch struct {
	Resource  string    `json:"resource"`
	Namespace string    `json:"namespace,omitempty"`
	Cause     string    `json:"cause,omitempty"`
	Detail    string    `json:"detail,omitempty"`
	From      time.Time `json:"from,omitzero"`
	To        time.Time `json:"to,omitzero"`
}

func (v *view) manifest(ctx context.Context, targets []Target, namespace string) (*manifest, error) {
	cluster := v.rec.Cluster()
	m := &manifest{
		Cluster: cluster.Name, ClusterUID: cluster.UID, Instant: v.point.Instant.String(), Time: v.point.Time.UTC(), Seq: v.point.Seq, RV: v.point.RV,
		Namespace: namespace, LeftOut: map[string]int{}, Resources: map[string]int{}, MadeBy: programName + " " + version.String(),
	}
	for _, n := range v.point.Notes {
		m.Notes = append(m.Notes, n.Text)
	}
	for _, resource := range v.objects.Resources() {
		// What is there; of a form for kubectl apply, what is written is counted.
		m.Resources[resource.String()] = v.objects.Resource(resource).Len()
		m.Objects += m.Resources[resource.String()]
	}
	v.mu.Lock()
	for _, d := range v.damaged {
		m.Damaged = append(m.Damaged, d.Error())
	}
	v.mu.Unlock()
	slices.Sort(m.Damaged)
	coverage, err := v.rec.Coverage(ctx, history.Scope{Streams: streamsOf(targets, namespace), Namespace: namespace})
	if err != nil {
		return nil, err
	}
	for _, c := range coverage {
		at := v.point.Time
		if c.Complete || at.Before(c.From) || !c.To.IsZero() && !at.Before(c.To) {
			continue
		}
		m.Incomplete = append(m.Incomplete, manifestStretch{
			Resource: schema.GroupResource{Group: c.Group, Resource: c.Resource}.String(), Namespace: c.Scope, Cause: c.Cause, Detail: c.Detail, From: c.From, To: c.To,
		})
	}
	return m, nil
}

// text is the manifest as a file.
func (m *manifest) text() ([]byte, error) {
	var b bytes.Buffer
	err := writeJSON(&b, m, true)
	return b.Bytes(), err
}

// recount begins to count what is written.
func (m *manifest) recount() { m.Objects, m.Resources = 0, map[string]int{} }

func (m *manifest) count(resource schema.GroupResource) {
	m.Objects++
	m.Resources[resource.String()]++
}

// leftOut is what was left out and why, for a person.
func (m *manifest) leftOut() []string {
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(m.LeftOut)) {
		lines = append(lines, fmt.Sprintf("%d × %s", m.LeftOut[reason], reason))
	}
	return lines
}

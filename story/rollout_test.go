package story_test

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scene/record"
)

// A play is a cluster with one Deployment. A test writes its events.
type play struct{ events []data.Event }

func (p *play) Resources() []data.Resource {
	return []data.Resource{
		{Version: "v1", Resource: "namespaces", Kind: "Namespace"},
		{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true},
		{Group: "apps", Version: "v1", Resource: "replicasets", Kind: "ReplicaSet", Namespaced: true},
		{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true},
		{Version: "v1", Resource: "events", Kind: "Event", Namespaced: true},
	}
}

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func (p *play) First() iter.Seq[data.Event] {
	return func(yield func(data.Event) bool) {
		yield(data.Event{Type: watch.Added, Name: "kube-system", UID: "cluster", RV: 1, At: noon,
			Object: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"cluster","resourceVersion":"1"}}`)})
	}
}

func (p *play) Events() iter.Seq2[data.Event, error] {
	return func(yield func(data.Event, error) bool) {
		for _, e := range p.events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (p *play) Len() (live, events int) { return 1, len(p.events) }

// does adds an event. rest follows the name, UID and resource version in the metadata.
func (p *play) does(resource int, what watch.EventType, name, rest string) {
	rv := uint64(len(p.events) + 2)
	r := p.Resources()[resource]
	p.events = append(p.events, data.Event{
		Resource: resource, Type: what, Namespace: "shop", Name: name, UID: "uid-" + name, RV: rv, At: noon.Add(time.Duration(rv) * time.Second),
		Object: fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"shop","uid":"uid-%s","resourceVersion":"%d"%s`,
			r.APIVersion(), r.Kind, name, name, rv, rest),
	})
}

// deployment adds a Deployment of one replica with this template and status.
func (p *play) deployment(what watch.EventType, generation int, image, status string) {
	p.does(1, what, "web", fmt.Sprintf(`,"generation":%d},"spec":{"replicas":1,"template":%s},"status":{%s}}`, generation, template(image, ""), status))
}

func template(image, labels string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{"app":"web"%s}},"spec":{"containers":[{"name":"web","image":"web:%s"}]}}`, labels, image)
}

func owned(by string) string {
	return fmt.Sprintf(`,"ownerReferences":[{"uid":"uid-%s","controller":true}]},`, by)
}

// pod adds a Pod with its own ReplicaSet.
func (p *play) pod(image, status string) {
	set := "web-" + image
	p.does(2, watch.Added, set, owned("web")+fmt.Sprintf(`"spec":{"template":%s}}`, template(image, `,"pod-template-hash":"x"`)))
	p.does(3, watch.Added, set+"-a", owned(set)+`"status":{"containerStatuses":[{"name":"web","state":{"waiting":{"reason":"ContainerCreating"}}}]}}`)
	p.does(3, watch.Modified, set+"-a", owned(set)+`"status":{`+status+`}}`)
}

func finished(generation int) string {
	return fmt.Sprintf(`"observedGeneration":%d,"replicas":1,"updatedReplicas":1,"availableReplicas":1`, generation)
}

func (p *play) record(t *testing.T) *history.Record {
	t.Helper()
	database := pgtest.New(t, pgtest.EmptyRecord)
	require.NoError(t, record.SetInto(t.Context(), database.URL(), p, nil))
	rec, err := history.Open(t.Context(), database.URL(), history.Options{})
	require.NoError(t, err)
	t.Cleanup(rec.Close)
	return rec
}

func (p *play) summaries(t *testing.T) []string {
	t.Helper()
	rec := p.record(t)
	s, _ := readStory(t, rec, about(t, rec, "deployments.apps", "shop", "web"))
	return summaries(s)
}

func waiting(reason string) string {
	return fmt.Sprintf(`"containerStatuses":[{"name":"web","state":{"waiting":{"reason":%q}}}]`, reason)
}

func TestARolloutHasAnOutcomeAndItsTroubles(t *testing.T) {
	p := &play{}
	p.deployment(watch.Added, 1, "v1", "")
	p.pod("v1", waiting("CrashLoopBackOff"))
	p.deployment(watch.Modified, 2, "v2", `"observedGeneration":1`)
	p.pod("v2", `"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]`)
	p.deployment(watch.Modified, 2, "v2", `"observedGeneration":2,"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]`)
	p.deployment(watch.Modified, 3, "v3", `"observedGeneration":2`)
	p.deployment(watch.Modified, 3, "v3", finished(2))
	p.deployment(watch.Modified, 3, "v3", finished(3))
	p.deployment(watch.Modified, 3, "v3", `"observedGeneration":3,"conditions":[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate"}]`)
	p.deployment(watch.Modified, 4, "v4", `"observedGeneration":3`)
	p.deployment(watch.Deleted, 4, "v4", `"observedGeneration":3`)
	require.Equal(t, []string{
		": →v1 from 2 by , CrashLoopBackOff of 1 at 5, replaced at 6",
		": v1→v2 from 6 by , Unschedulable of 1 at 9, ProgressDeadlineExceeded of 1 at 10, replaced at 11",
		": v2→v3 from 11 by , done at 13",
		": v3→v4 from 15 by , deleted at 16",
	}, p.summaries(t))
}

func TestAPodOfTheOldTemplateDoesNotTroubleTheRollout(t *testing.T) {
	p := &play{}
	p.deployment(watch.Added, 1, "v1", "")
	p.deployment(watch.Modified, 1, "v1", finished(1))
	p.deployment(watch.Modified, 2, "v2", "")
	p.pod("v1", waiting("CrashLoopBackOff"))
	p.deployment(watch.Modified, 3, "v1", "")
	require.Equal(t, []string{
		": →v1 from 2 by , done at 3",
		": v1→v2 from 4 by , undone at 8",
		": v2→v1 from 8 by ",
	}, p.summaries(t))
}

// An Event belongs to an object by UID. Its name only lets the story skip other Events.
func TestAnEventBelongsToAStoryByUID(t *testing.T) {
	p := &play{}
	p.deployment(watch.Added, 1, "v1", finished(1))
	for _, e := range [][2]string{
		{"web.18b1234567890abc", "uid-web"}, {"of-another-form", "uid-web"}, {"web.18b1234567890abd", "uid-former"}, {"other.18b1234567890abc", "uid-other"},
	} {
		p.does(4, watch.Added, e[0], fmt.Sprintf(`},"reason":%q,"involvedObject":{"uid":%q}}`, e[0], e[1]))
	}
	rec := p.record(t)
	_, entries := readStory(t, rec, about(t, rec, "deployments.apps", "shop", "web"))
	var reasons []string
	for _, e := range entries {
		if e.Event != nil {
			reasons = append(reasons, e.Event.Reason)
		}
	}
	require.Equal(t, []string{"web.18b1234567890abc", "of-another-form"}, reasons)
}

// One Deployment orphans a ReplicaSet, and another one adopts it. A ReplicaSet adopts a Pod without an owner, and releases
// another one.
func TestAnAdoptedObjectBelongsToTheStoryWithItsWholeLife(t *testing.T) {
	none := `},"spec":{}}`
	p := &play{}
	p.does(1, watch.Added, "former", none)
	p.does(2, watch.Added, "orphan", owned("former")+`"spec":{}}`)
	p.does(3, watch.Added, "of-orphan", owned("orphan")+`"spec":{}}`)
	p.does(3, watch.Added, "bare", none)
	p.does(3, watch.Added, "released", none)
	p.does(3, watch.Added, "stranger", none)
	p.does(1, watch.Added, "web", none)
	p.does(2, watch.Modified, "orphan", none)
	p.does(2, watch.Modified, "orphan", owned("web")+`"spec":{}}`)
	p.does(3, watch.Modified, "bare", `,"ownerReferences":[{"uid":"uid-absent"}]},"spec":{}}`)
	p.does(3, watch.Modified, "bare", `,"ownerReferences":[{"uid":"uid-absent"},{"uid":"uid-orphan","controller":true}]},"spec":{}}`)
	p.does(3, watch.Modified, "released", owned("orphan")+`"spec":{}}`)
	p.does(3, watch.Modified, "released", none)
	p.does(3, watch.Modified, "stranger", owned("absent")+`"spec":{}}`)
	rec := p.record(t)
	s, entries := readStory(t, rec, about(t, rec, "deployments.apps", "shop", "web"))
	depths := map[string]int{}
	for _, o := range s.Objects {
		depths[o.Name] = o.Depth
	}
	require.Equal(t, map[string]int{"web": 0, "orphan": 1, "of-orphan": 2, "bare": 2, "released": 2}, depths)
	require.Equal(t, "orphan", entries[0].Name, "its life began before the owner's")
	require.Len(t, entries, 3+1+1+3+3)
}

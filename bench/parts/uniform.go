package parts

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/bench/data"
)

// A uniform Set has custom resources whose objects all have one size, and are updated one after the other: a value changes, and the
// generation. It is for what a real cluster does not let one vary alone.
type uniform struct {
	resources int
	objects   int // of all resources
	bytes     int // of an object, about
	events    int
}

// uniformBegin is when its first event is written.
var uniformBegin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func (u uniform) Resources() []data.Resource {
	all := make([]data.Resource, u.resources)
	for i := range all {
		all[i] = data.Resource{
			Group: fmt.Sprintf("g%03d.bench.example.com", i), Version: "v1", Resource: fmt.Sprintf("things%03d", i), Kind: fmt.Sprintf("Thing%03d", i), Namespaced: true,
		}
	}
	return all
}

func (u uniform) Len() (live, events int) { return u.objects, u.events }

func (u uniform) First() iter.Seq[data.Event] {
	return func(yield func(data.Event) bool) {
		resources := u.Resources()
		rv := uint64(0)
		for r := range resources {
			for o := r; o < u.objects; o += u.resources {
				rv++
				if !yield(u.event(resources, o, 1, rv, watch.Added)) {
					return
				}
			}
		}
	}
}

func (u uniform) Events() iter.Seq2[data.Event, error] {
	return func(yield func(data.Event, error) bool) {
		resources := u.Resources()
		for n := range u.events {
			if !yield(u.event(resources, n%u.objects, 2+n/u.objects, uint64(u.objects+n+1), watch.Modified), nil) {
				return
			}
		}
	}
}

func (u uniform) event(resources []data.Resource, o, generation int, rv uint64, kind watch.EventType) data.Event {
	e := data.Event{
		Resource: o % u.resources, Type: kind, Namespace: fmt.Sprintf("team-%d", o%20), Name: fmt.Sprintf("thing-%07d", o),
		UID: fmt.Sprintf("5c1fd7c4-5ad4-4a35-8f23-%012x", o), RV: rv, At: uniformBegin.Add(time.Duration(rv) * time.Millisecond),
	}
	r := resources[e.Resource]
	var b strings.Builder
	fmt.Fprintf(&b, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d","generation":%d,`+
		`"creationTimestamp":"2026-03-01T00:00:00Z","labels":{"app":"thing"},"managedFields":[{"apiVersion":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{}}},`+
		`"manager":"bench","operation":"Update","time":%q}]},"spec":{`,
		r.APIVersion(), r.Kind, e.Name, e.Namespace, e.UID, rv, generation, r.APIVersion(), e.At.Format(time.RFC3339))
	for i := 0; b.Len() < u.bytes; i++ {
		fmt.Fprintf(&b, `"setting%05d":{"enabled":true,"value":"of %s, number %d"},`, i, e.Name, i)
	}
	fmt.Fprintf(&b, `"turn":"%d of %s"}}`, generation, e.UID)
	e.Object = []byte(b.String())
	return e
}

package describe

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/timeshift"
	"github.com/kuberewind/kuberewind/patch"
)

// A question is a request that describe sends: one object or a list of a resource.
type question struct {
	resource schema.GroupResource
	list     bool
}

// aged lists the times for which kubectl's describe prints only the age.
var aged = map[question][]string{
	{schema.GroupResource{Resource: "events"}, true}:                  {"/items/*/firstTimestamp", "/items/*/lastTimestamp", "/items/*/eventTime", "/items/*/series/lastObservedTime"},
	{schema.GroupResource{Resource: "pods"}, true}:                    {"/items/*/metadata/creationTimestamp"},
	{schema.GroupResource{Resource: "pods"}, false}:                   {"/metadata/deletionTimestamp"},
	{schema.GroupResource{Resource: "persistentvolumes"}, false}:      {"/metadata/deletionTimestamp"},
	{schema.GroupResource{Resource: "persistentvolumeclaims"}, false}: {"/metadata/deletionTimestamp"},
}

// withAges moves these times of an answer: their age now equals their age at the instant.
func withAges(q question, body []byte, instant, now time.Time) ([]byte, error) {
	var paths []patch.Path
	for _, text := range aged[q] {
		path, err := patch.ParsePath(text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return timeshift.Move(body, paths, func(t time.Time) time.Time {
		age := instant.Sub(t)
		if age > 0 {
			age = age.Truncate(time.Second) // kubectl prints whole seconds, and may print them up to a second later
		}
		return now.Add(-age)
	})
}

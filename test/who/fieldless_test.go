package who_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/evidence"
	"github.com/kuberewind/kuberewind/patch"
)

// served are the versions of a ConfigMap without data. Kubernetes 1.37 served them.
var served = []string{
	`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"fieldless","namespace":"live","uid":"fd7cb5ea","resourceVersion":"1279","creationTimestamp":"2026-11-25T13:45:18Z"}}`,
	`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"fieldless","namespace":"live","uid":"fd7cb5ea","resourceVersion":"1280","creationTimestamp":"2026-11-25T13:45:18Z","finalizers":["example.com/hold"]}}`,
	`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"fieldless","namespace":"live","uid":"fd7cb5ea","resourceVersion":"1281","creationTimestamp":"2026-11-25T13:45:18Z","deletionTimestamp":"2026-11-25T13:45:18Z","deletionGracePeriodSeconds":0,"finalizers":["example.com/hold"]}}`,
}

func TestAnObjectWithoutManagedFieldsHasNoActor(t *testing.T) {
	v := evidence.Version{Type: "Added", Source: "watch", Live: true, Observed: time.Date(2026, 11, 25, 13, 45, 18, 0, time.UTC)}
	for _, text := range served {
		after, err := patch.Canonical([]byte(text))
		require.NoError(t, err)
		if v.Before != nil {
			v.Type = "Updated"
			v.Patch, err = patch.Diff(v.Before, after)
			require.NoError(t, err)
		}
		v.After = after
		require.Equal(t, evidence.Verdict{Evidence: evidence.None}, evidence.Judge(v), text)
		v.Before = after
	}
}

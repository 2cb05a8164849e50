package controlplane_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kuberewind/kuberewind/internal/controlplane"
)

func historyIsWhole(plane *controlplane.ControlPlane) func(*testing.T) {
	return func(t *testing.T) {
		client := clientOf(t, plane.Config())
		before, err := plane.Etcd.Revision(t.Context())
		require.NoError(t, err)
		createConfigMap(t, client, "written")
		created, err := getConfigMap(t, client, "written")
		require.NoError(t, err)
		patched := patchConfigMap(t, client, "written", "1")
		require.NoError(t, client.CoreV1().ConfigMaps("default").Delete(t.Context(), "written", metav1.DeleteOptions{}))

		history, err := plane.Etcd.History(t.Context(), before+1, 0)
		require.NoError(t, err)
		written := ofKey(history, "/registry/configmaps/default/written")
		require.Len(t, written, 3)
		require.Equal(t, []controlplane.RevisionKind{controlplane.Create, controlplane.Update, controlplane.Delete},
			[]controlplane.RevisionKind{written[0].Kind, written[1].Kind, written[2].Kind})
		require.Equal(t, created.ResourceVersion, strconv.FormatInt(written[0].Rev, 10))
		require.Equal(t, patched, written[1].Rev)
		require.Greater(t, written[2].Rev, patched)
		require.Nil(t, written[0].Previous)
		require.Equal(t, written[0].Value, written[1].Previous)
		require.Equal(t, written[1].Value, written[2].Previous)
		require.Nil(t, written[2].Value)

		bounded, err := plane.Etcd.History(t.Context(), before+1, patched-1)
		require.NoError(t, err)
		require.Len(t, ofKey(bounded, "/registry/configmaps/default/written"), 1)
		none, err := plane.Etcd.History(t.Context(), patched+1, patched)
		require.NoError(t, err)
		require.Empty(t, none)
		_, err = plane.Etcd.History(t.Context(), 0, patched+1_000_000)
		require.ErrorContains(t, err, "still to come")
	}
}

func ofKey(history []controlplane.Revision, key string) []controlplane.Revision {
	var found []controlplane.Revision
	for _, revision := range history {
		if revision.Key == key {
			found = append(found, revision)
		}
	}
	return found
}

func auditCounts(plane *controlplane.ControlPlane) func(*testing.T) {
	return func(t *testing.T) {
		config := plane.Config()
		config.UserAgent = "counted"
		client := clientOf(t, config)
		watching, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer watching.Stop()
		for range 3 {
			_, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
		}
		_, err = getConfigMap(t, client, "absent")
		require.Error(t, err)

		requests, err := plane.APIServer.Requests()
		require.NoError(t, err)
		counts := controlplane.Count(requests)
		for verb, count := range map[string]int{"watch": 1, "list": 3, "get": 1, "create": 0} {
			require.Equal(t, count, counts[controlplane.RequestKind{Verb: verb, Resource: "configmaps", UserAgent: "counted"}], verb)
		}
		for _, request := range requests {
			if request.UserAgent == "counted" && request.Verb == "watch" {
				require.Equal(t, http.StatusOK, request.Code)
				require.False(t, request.Ended)
				require.Equal(t, controlplane.AdminName, request.User)
			}
		}
	}
}

func cutEndsWatches(plane *controlplane.ControlPlane) func(*testing.T) {
	return func(t *testing.T) {
		client := clientOf(t, plane.Config())
		watching, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer watching.Stop()
		pid := plane.APIServer.PID()
		require.Positive(t, plane.APIServer.CutConnections())
		for range watching.ResultChan() {
			// Ends when the watch does.
		}
		_, err = client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, pid, plane.APIServer.PID())
	}
}

func compactionForgets(plane *controlplane.ControlPlane, uncached *controlplane.APIServer) func(*testing.T) {
	return func(t *testing.T) {
		config, err := uncached.Config(controlplane.AdminName)
		require.NoError(t, err)
		client := clientOf(t, config)
		createConfigMap(t, client, "compacted")
		old := patchConfigMap(t, client, "compacted", "1")
		var last int64
		for i := range 3 {
			last = patchConfigMap(t, client, "compacted", strconv.Itoa(i+2))
		}

		event := firstEvent(t, client, old)
		require.Equal(t, watch.Modified, event.Type, "before the compaction the old revision can be watched")
		require.NoError(t, plane.Etcd.Compact(t.Context(), last))
		event = firstEvent(t, client, old)
		require.Equal(t, watch.Error, event.Type)
		require.True(t, apierrors.IsResourceExpired(apierrors.FromObject(event.Object)), "%v", event.Object)
		_, err = plane.Etcd.History(t.Context(), old, 0)
		require.ErrorContains(t, err, "compacted")
	}
}

// firstEvent returns the first event of a watch of ConfigMaps from a resource version.
func firstEvent(t *testing.T, client kubernetes.Interface, from int64) watch.Event {
	t.Helper()
	options := metav1.ListOptions{ResourceVersion: strconv.FormatInt(from, 10)}
	watching, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), options)
	require.NoError(t, err)
	defer watching.Stop()
	return <-watching.ResultChan()
}

func restoreGoesBack(plane *controlplane.ControlPlane) func(*testing.T) {
	return func(t *testing.T) {
		client := clientOf(t, plane.Config())
		createConfigMap(t, client, "earlier")
		saved, err := plane.Etcd.SaveData()
		require.NoError(t, err)
		at, err := plane.Etcd.Revision(t.Context())
		require.NoError(t, err)
		createConfigMap(t, client, "later")

		require.NoError(t, plane.Etcd.RestoreData(t.Context(), saved))
		after, err := plane.Etcd.Revision(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, after, at)
		require.NoError(t, plane.APIServer.Restart(t.Context()))
		_, err = getConfigMap(t, client, "earlier")
		require.NoError(t, err)
		_, err = getConfigMap(t, client, "later")
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	}
}

// patchConfigMap changes the object and returns its new resource version.
func patchConfigMap(t *testing.T, client kubernetes.Interface, name, value string) int64 {
	t.Helper()
	body := fmt.Appendf(nil, `{"data":{"value":%q}}`, value)
	changed, err := client.CoreV1().ConfigMaps("default").Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{})
	require.NoError(t, err)
	version, err := strconv.ParseInt(changed.ResourceVersion, 10, 64)
	require.NoError(t, err)
	return version
}

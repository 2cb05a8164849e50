package clusterevents

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kuberewind/kuberewind/internal/controlplane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// safeBuffer is a buffer that the broadcaster and the test can use at once.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestEventsAreWrittenAndARefusalIsLoggedOnce(t *testing.T) {
	plane := controlplane.ForTest(t, controlplane.Options{
		APIServer: controlplane.APIServerOptions{Audit: true, AuditUsers: []string{"limited"}},
		Users:     []controlplane.User{{Name: "limited"}},
	})
	admin, err := kubernetes.NewForConfig(plane.Config())
	require.NoError(t, err)
	list := func() []corev1.Event {
		found, err := admin.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "source=" + Component})
		require.NoError(t, err)
		return found.Items
	}

	var log safeBuffer
	refused, err := plane.APIServer.Config("limited")
	require.NoError(t, err)
	p, err := New(Options{Config: refused, Namespace: "default", Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	p.Warning("GapOpened", "one")
	p.Warning("GapClosed", "two")
	require.Eventually(t, func() bool {
		requests, err := plane.APIServer.Requests()
		require.NoError(t, err)
		return len(requests) == 2
	}, 5*time.Minute, 10*time.Millisecond)
	p.Close()
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	require.Contains(t, log.String(), "Events about the recorder are refused; this is logged only once")
	require.Empty(t, list())

	var quiet safeBuffer
	p, err = New(Options{Config: plane.Config(), Namespace: "default", Pod: "recorder-0", PodUID: "u", Host: "h", Log: slog.New(slog.NewTextHandler(&quiet, nil))})
	require.NoError(t, err)
	defer p.Close()
	p.Normal("Standby", strings.Repeat("ü", maxMessage))
	require.Eventually(t, func() bool { return len(list()) == 1 }, 5*time.Minute, 10*time.Millisecond)
	event := list()[0]
	require.Equal(t, corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "recorder-0", UID: "u"}, event.InvolvedObject)
	require.Equal(t, corev1.EventSource{Component: Component, Host: "h"}, event.Source)
	require.Equal(t, "Normal Standby", event.Type+" "+event.Reason)
	require.True(t, strings.HasSuffix(event.Message, "üü…"))

	// If an Event has expired, client-go's patch of it fails, and client-go then makes it again.
	require.NoError(t, admin.CoreV1().Events("default").Delete(t.Context(), event.Name, metav1.DeleteOptions{}))
	p.Normal("Standby", strings.Repeat("ü", maxMessage))
	require.Eventually(t, func() bool { return len(list()) == 1 }, 5*time.Minute, 10*time.Millisecond)
	require.Empty(t, quiet.String(), "it was not refused")

	var none *Publisher
	none.Warning("GapOpened", "not written")
	none.Close()
}

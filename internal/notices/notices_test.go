package notices_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/clusterevents"
	"github.com/kuberewind/kuberewind/internal/notices"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnEventAboutAGapIsAWarningUnlessNothingWasMissed(t *testing.T) {
	written := make(chan corev1.Event, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event corev1.Event
		if json.NewDecoder(r.Body).Decode(&event) == nil {
			written <- event
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(&event)
	}))
	defer server.Close()
	p, err := clusterevents.New(clusterevents.Options{
		Config:    &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
		Namespace: "default", Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	n := notices.New(p)
	for _, g := range []postgres.GapChange{
		{Resource: "one", Cause: delta.CauseExpired},
		{Resource: "two", Cause: delta.CauseExpired, Closed: true, Outcome: delta.OutcomeResumed},
		{Resource: "three", Cause: delta.CauseExpired, Closed: true, Outcome: delta.OutcomeEqual},
		{Resource: "four", Cause: delta.CauseExpired, Closed: true, Outcome: delta.OutcomeRelisted},
	} {
		n.Gap(&g)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.Follow(ctx, func() time.Duration { return 0 })
	}()
	got := map[string]string{}
	for range 4 {
		event := <-written
		got[event.Message[strings.LastIndex(event.Message, " ")+1:]] = event.Type + " " + event.Reason
	}
	stop()
	<-ended
	p.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	require.Equal(t, map[string]string{
		"one": "Warning GapOpened", "two": "Normal GapClosed", "three": "Warning GapClosed", "four": "Warning GapClosed",
	}, got)
}

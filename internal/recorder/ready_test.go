package recorder

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/resources"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestARecorderIsNotReadyWhileAStreamCannotBeOpened(t *testing.T) {
	db := pgtest.Shared(t).New(t, pgtest.EmptyRecord)
	sink, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL(), ClusterUID: "uid", ClusterName: "prod"})
	require.NoError(t, err)
	defer sink.Close()
	client, err := kube.NewClient(&rest.Config{Host: "https://127.0.0.1:1"}, kube.Options{})
	require.NoError(t, err)
	defer client.Close()
	all, err := filter.New(nil, nil)
	require.NoError(t, err)
	redactor, err := redact.New(redact.Key{}, redact.Record, nil)
	require.NoError(t, err)
	r := newRecorder(config.Config{}, slog.New(slog.DiscardHandler))
	r.streams = stream.NewSet(stream.Options{
		Record: sink, Rules: all, Redactor: redactor, RollbackStreams: rollback.New(rollback.Options{}), Schemas: r.schemas, Metrics: telemetry.NewMetrics(),
	})
	launcher := stream.NewLauncher(stream.Launcher{
		Client: client, Queue: deltafifo.New(deltafifo.Options{}), Lists: stream.NewGate(1), Now: time.Now, Returned: func() <-chan struct{} { return nil }, Log: r.env.log,
	})
	defer r.streams.Halt()
	h := resources.NewHandler(resources.Options{
		Streams: r.streams, Launcher: launcher, Prior: sink.Prior(), Client: client, Rules: all, Documents: r.documents, Schemas: r.schemas,
		Opened: r.env.readiness.opened, GiveUp: func(error) {}, Log: r.env.log,
	})
	ready := func() error {
		_, err := r.env.readiness.state()
		return err
	}
	require.ErrorContains(t, ready(), "being opened")
	r.env.readiness.synced.Store(true)
	require.NoError(t, ready())

	widgets, gadgets := kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, kube.Resource{Group: "example.com", Version: "v1", Name: "gadgets"}
	db.RefuseConnections(t)
	db.CutConnections(t)
	require.Error(t, h.Added(t.Context(), widgets, ""))
	require.Error(t, h.Added(t.Context(), gadgets, ""))
	require.ErrorContains(t, ready(), "widgets.example.com is not recorded yet; retrying: ")
	db.AllowConnections(t)
	require.NoError(t, h.Removed(t.Context(), gadgets, ""))
	require.NoError(t, h.Added(t.Context(), widgets, ""))
	require.NoError(t, ready())
}

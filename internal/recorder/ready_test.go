package recorder

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/redact"
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
	r := newRecorder(config.Config{ListConcurrency: 1}, slog.New(slog.DiscardHandler))
	r.metrics, r.client, r.sink, r.filter, r.redactor = &metrics{telemetry.NewMetrics()}, client, sink, all, redactor
	r.queue = deltafifo.New(deltafifo.Options{})
	defer r.haltAll()
	h := newHandler(r, func(error) {})
	ready := func() error {
		_, err := r.ready()
		return err
	}
	require.ErrorContains(t, ready(), "being opened")
	r.synced.Store(true)
	require.NoError(t, ready())

	widgets, gadgets := kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, kube.Resource{Group: "example.com", Version: "v1", Name: "gadgets"}
	db.RefuseConnections(t)
	db.CutConnections(t)
	require.Error(t, h.Added(t.Context(), widgets, ""))
	require.Error(t, h.Added(t.Context(), gadgets, ""))
	require.ErrorContains(t, ready(), "widgets.example.com is not recorded yet; it is tried again: ")
	db.AllowConnections(t)
	require.NoError(t, h.Removed(t.Context(), gadgets, ""))
	require.NoError(t, h.Added(t.Context(), widgets, ""))
	require.NoError(t, ready())
}

package recorder

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestADatabaseThatCannotBeAskedEndsNoLeader(t *testing.T) {
	db := pgtest.Shared(t).New(t, pgtest.EmptyRecord)
	sink, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL(), ClusterUID: "uid", ClusterName: "prod"})
	require.NoError(t, err)
	defer sink.Close()
	r := newRecorder(config.Config{}, slog.New(slog.DiscardHandler))
	r.sink = sink
	require.NoError(t, r.fenced(t.Context()))
	db.RefuseConnections(t)
	db.CutConnections(t)
	require.Error(t, sink.Holds(t.Context()))
	require.NoError(t, r.fenced(t.Context()))
	db.AllowConnections(t)
	db.Exec(t, "UPDATE kuberewind.heads SET epoch = epoch + 1")
	require.ErrorIs(t, r.fenced(t.Context()), postgres.ErrFenced)
}

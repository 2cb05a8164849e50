package succession

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestFencedReturnsNoErrorWhileTheDatabaseIsAway(t *testing.T) {
	db := pgtest.Shared(t).New(t, pgtest.EmptyRecord)
	sink, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL(), ClusterUID: "uid", ClusterName: "prod"})
	require.NoError(t, err)
	defer sink.Close()
	log := slog.New(slog.DiscardHandler)
	require.NoError(t, Fenced(t.Context(), sink, log))
	db.RefuseConnections(t)
	db.CutConnections(t)
	require.Error(t, sink.CheckFence(t.Context()))
	require.NoError(t, Fenced(t.Context(), sink, log))
	db.AllowConnections(t)
	db.Exec(t, "UPDATE kuberewind.heads SET epoch = epoch + 1")
	require.ErrorIs(t, Fenced(t.Context(), sink, log), postgres.ErrFenced)
}

// A recorder may have been killed after it made the schema. Then the roles may lack their rights.
func TestElectMakesAMissingSchemaAndMissingRights(t *testing.T) {
	migrated := func(ctx context.Context, conn *pgx.Conn) error {
		return migrations.Up(ctx, conn.Config().ConnString(), slog.New(slog.DiscardHandler))
	}
	for name, setup := range map[string]pgtest.Setup{"all": nil, "the rights": migrated} {
		t.Run(name, func(t *testing.T) {
			log := slog.New(slog.DiscardHandler)
			cfg := config.Config{
				Storage:  config.Storage{Database: pgtest.New(t, setup).URL(), DataDir: t.TempDir(), Migrate: true},
				Election: config.Election{LeaderElect: config.ElectDatabase, LeaseDuration: election.MinTerm},
			}
			db, err := database.Open(t.Context(), cfg, log)
			require.NoError(t, err)
			c := Candidate{Config: cfg, Database: db, Cluster: "uid", Log: log}
			e, err := c.Elect(t.Context())
			require.NoError(t, err)
			e.Close()
		})
	}
}

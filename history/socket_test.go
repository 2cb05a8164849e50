package history

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// docs/connect.md and the examples open the embedded database by its socket directory and its password file.
func TestOpenAcceptsASocketDirectoryAndAPasswordFile(t *testing.T) {
	if os.Getenv(pgtest.URLEnv) != "" {
		t.Skip("the PostgreSQL in " + pgtest.URLEnv + " has its password file elsewhere")
	}
	b := newBook(t, 1)
	server, err := pgx.ParseConfig(b.DB.URL())
	require.NoError(t, err)
	settings := fmt.Sprintf("host=%s port=%d user=%s dbname=%s passfile=%s",
		server.Host, server.Port, server.User, server.Database, filepath.Join(filepath.Dir(server.Host), "pgpass"))
	r, err := Open(t.Context(), settings, Options{})
	require.NoError(t, err)
	defer r.Close()
	_, err = r.Resolve(t.Context(), Now(), Scope{})
	require.ErrorIs(t, err, ErrEmpty)
	_, err = Open(t.Context(), settings+".none", Options{})
	require.Error(t, err, "the server requires the password")
}

package pgdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFillCopiesTheDataToANewFolderAndReplacesNone(t *testing.T) {
	made, dir := t.TempDir(), filepath.Join(t.TempDir(), "new", "postgres")
	require.NoError(t, os.Mkdir(filepath.Join(made, "data"), 0o700))
	version := filepath.Join("data", "PG_VERSION")
	require.NoError(t, os.WriteFile(filepath.Join(made, version), []byte("18\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(made, "pgpass"), []byte("secret\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(made, "server.conf"), nil, 0o600))
	t.Setenv(Env, made)
	require.NoError(t, Fill(dir))
	text, err := os.ReadFile(filepath.Join(dir, version))
	require.NoError(t, err)
	require.Equal(t, "18\n", string(text))
	require.FileExists(t, filepath.Join(dir, "pgpass"))
	require.NoFileExists(t, filepath.Join(dir, "server.conf"), "the settings contain the name of the other folder")

	require.NoError(t, os.WriteFile(filepath.Join(dir, version), []byte("17\n"), 0o600))
	require.NoError(t, Fill(dir))
	text, err = os.ReadFile(filepath.Join(dir, version))
	require.NoError(t, err)
	require.Equal(t, "17\n", string(text))
}

func TestFillDoesNothingIfNoDataWasMade(t *testing.T) {
	t.Setenv(Env, "")
	dir := filepath.Join(t.TempDir(), "postgres")
	require.NoError(t, Fill(dir))
	require.NoDirExists(t, dir)
}

func TestAFolderWithoutDataIsAnErrorThatNamesIt(t *testing.T) {
	t.Setenv(Env, t.TempDir())
	require.ErrorContains(t, Fill(filepath.Join(t.TempDir(), "postgres")), "run make test-programs, or unset "+Env)
}

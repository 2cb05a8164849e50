package running_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/running"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// start serves until the returned function is called.
func start(t *testing.T) (*running.Server, func()) {
	t.Helper()
	s, err := serve.Listen(serve.Options{Address: "127.0.0.1:0", Handler: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	end := func() {
		cancel()
		require.NoError(t, <-served)
		s.Close()
	}
	return &running.Server{Access: s.Access(), Database: "d", Cluster: "c", PID: os.Getpid()}, end
}

func find(t *testing.T, folder, database, cluster string) (*running.Server, []string) {
	t.Helper()
	found, left, err := running.Find(t.Context(), []string{filepath.Join(folder, "none"), folder}, database, cluster)
	require.NoError(t, err)
	return found, left
}

func files(t *testing.T, folder string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	return names
}

func TestAServerIsFoundAsLongAsItRuns(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	s, end := start(t)
	remove, err := s.Publish([]string{"/proc/nowhere", folder})
	require.NoError(t, err)
	got, left := find(t, folder, "d", "c")
	require.Equal(t, s, got)
	require.Empty(t, left)
	for _, other := range [][2]string{{"d", "other"}, {"other", "c"}} {
		got, _ = find(t, folder, other[0], other[1])
		require.Nil(t, got, other)
	}
	info, err := os.Stat(files(t, folder)[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	end()
	require.NoError(t, remove())
	require.Empty(t, files(t, folder))
}

func TestAFileWhoseServerIsGoneIsRemoved(t *testing.T) {
	folder := t.TempDir()
	gone, end := start(t)
	end()
	_, err := gone.Publish([]string{folder})
	require.NoError(t, err)
	other, end := start(t) // Its CA differs from the one in the file.
	defer end()
	other.CA = gone.CA
	_, err = other.Publish([]string{folder})
	require.NoError(t, err)
	got, left := find(t, folder, "d", "c")
	require.Nil(t, got)
	require.Empty(t, left)
	require.Empty(t, files(t, folder))
}

func TestAServerThatIsSlowKeepsItsFile(t *testing.T) {
	t.Parallel() // It waits for the timeout.
	folder := t.TempDir()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer mute.Close()
	s := &running.Server{Access: serve.Access{URL: "https://" + mute.Addr().String()}, Database: "d", Cluster: "c", PID: 17}
	_, err = s.Publish([]string{folder})
	require.NoError(t, err)
	got, left := find(t, folder, "d", "c")
	require.Nil(t, got)
	require.Len(t, left, 1)
	require.Contains(t, left[0], "process 17 does not answer within 2s")
	require.Len(t, files(t, folder), 1)
}

func TestAFileThatOthersCouldHaveWrittenIsNotUsed(t *testing.T) {
	s, end := start(t)
	defer end()
	for name, c := range map[string]struct {
		spoil func(file string) error
		says  string
	}{
		"others can read it": {func(file string) error { return os.Chmod(file, 0o640) }, "its mode is 0640"},
		"it leads elsewhere": {func(file string) error {
			return os.Rename(file, file+".real")
		}, ""},
		"it is half": {func(file string) error { return os.Truncate(file, 20) }, "unexpected EOF"},
		"another's":  {func(file string) error { return os.Chown(file, 12345, -1) }, "its owner has UID 12345"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another's" && os.Getuid() != 0 {
				t.Skip("only root can give a file to another user")
			}
			folder := t.TempDir()
			_, err := s.Publish([]string{folder})
			require.NoError(t, err)
			file := files(t, folder)[0]
			require.NoError(t, c.spoil(file))
			if c.says == "" {
				require.NoError(t, os.Symlink(file+".real", file))
				c.says = "too many levels of symbolic links"
			}
			got, left := find(t, folder, "d", "c")
			require.Nil(t, got)
			require.Len(t, left, 1)
			require.Contains(t, left[0], c.says)
			require.FileExists(t, file)
		})
	}
}

func TestADatabaseHasOneIdentityForEveryLogin(t *testing.T) {
	one, two := pgtest.New(t, pgtest.EmptyRecord), pgtest.New(t, pgtest.EmptyRecord)
	identity, err := running.Identity(t.Context(), one.Pool(t))
	require.NoError(t, err)
	other, err := running.Identity(t.Context(), two.Pool(t))
	require.NoError(t, err)
	require.NotEqual(t, identity, other)
	auditor, err := pgx.Connect(t.Context(), one.Login(t, "kuberewind_auditor"))
	require.NoError(t, err)
	defer func() { require.NoError(t, auditor.Close(t.Context())) }()
	again, err := running.Identity(t.Context(), auditor)
	require.NoError(t, err)
	require.Equal(t, identity, again)
}

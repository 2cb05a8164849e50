package embedded

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
	"github.com/stretchr/testify/require"
)

// repository serves binaries as the public repository does: a jar with a .txz, and its checksum.
type repository struct {
	jar      []byte
	checksum string
	status   int           // of the jar
	requests chan struct{} // if not nil, receives for each request, which then hangs until its client disconnects
}

func (r *repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if r.requests != nil {
		r.requests <- struct{}{}
		<-request.Context().Done()
		return
	}
	if strings.HasSuffix(request.URL.Path, ".sha256") {
		if r.checksum == "" {
			http.NotFound(w, request)
			return
		}
		_, _ = w.Write([]byte(r.checksum))
		return
	}
	if r.status != 0 {
		http.Error(w, "<html>sorry</html>", r.status)
		return
	}
	_, _ = w.Write(r.jar)
}

func serve(t *testing.T, r *repository) string {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return server.URL
}

// publish returns a repository whose programs run the machine's own binaries, or the given script.
func publish(t *testing.T, p *programs, script string) *repository {
	t.Helper()
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip("xz, which packs the archive to fetch, is not on this machine")
	}
	tree := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(tree, "bin"), 0o755))
	for _, name := range serverPrograms {
		text := "#!/bin/sh\n" + script + "\n"
		if script == "" {
			text = fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", p.bin.program(name))
		}
		require.NoError(t, os.WriteFile(filepath.Join(tree, "bin", name), []byte(text), 0o755))
	}
	archive := filepath.Join(t.TempDir(), "postgres.txz")
	out, err := exec.Command("tar", "-cJf", archive, "-C", tree, "bin").CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(archive)
	require.NoError(t, err)
	var jar bytes.Buffer
	writer := zip.NewWriter(&jar)
	entry, err := writer.Create("postgres-linux-x86_64.txz")
	require.NoError(t, err)
	_, err = entry.Write(text)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	sum := sha256.Sum256(jar.Bytes())
	return &repository{jar: jar.Bytes(), checksum: hex.EncodeToString(sum[:])}
}

// fetcher returns the programs of a new Server, a finder with the machine's binaries, and the options of the Server.
func fetcher(t *testing.T) (*programs, finder, Options) {
	t.Helper()
	o, err := options(t, newDir(t)).withDefaults()
	require.NoError(t, err)
	s, err := prepare(testContext(t), o)
	require.NoError(t, err)
	p := s.programs
	p.bin, err = p.choose(testContext(t), 0)
	require.NoError(t, err)
	return p, finder{account: p.account, workDir: p.layout.dir}, o
}

func TestFetchedBinariesAreUsed(t *testing.T) {
	t.Parallel()
	p, f, o := fetcher(t)
	repo := publish(t, p, "")
	bin, err := p.fetch(testContext(t), f, newMajor, serve(t, repo))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(p.layout.binaries(), string(embeddedpostgres.V18), "bin"), bin.dir)
	entries, err := os.ReadDir(p.layout.binaries())
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing unfinished is left")

	o.BinDir = bin.dir
	require.Equal(t, "1", query(t, start(t, o).URL(), "SELECT '1'"))
}

func TestBinariesThatFailAnyCheckAreNotKept(t *testing.T) {
	t.Parallel()
	p, f, _ := fetcher(t)
	for name, test := range map[string]struct {
		change func(*repository)
		script string
		want   string
	}{
		"wrong checksum": {change: func(r *repository) { r.checksum = strings.Repeat("0", 64) }, want: "checksums do not match"},
		"no checksum":    {change: func(r *repository) { r.checksum = "" }, want: ".sha256: 404 Not Found"},
		"not there":      {change: func(r *repository) { r.status = http.StatusNotFound }, want: ".jar: 404 Not Found"},
		"a login page":   {change: func(r *repository) { r.jar = []byte("<html>log in</html>"); r.checksum = sumOf(r.jar) }, want: "zip"},
		"not for here":   {script: "echo wrong libc; exit 127", want: "does not work here"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := publish(t, p, test.script)
			if test.change != nil {
				test.change(repo)
			}
			_, err := p.fetch(testContext(t), f, newMajor, serve(t, repo))
			require.ErrorContains(t, err, test.want)
			require.NoDirExists(t, filepath.Join(p.layout.binaries(), string(embeddedpostgres.V18)))
		})
	}
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func TestAnUnreachableRepositoryIsNamed(t *testing.T) {
	t.Parallel()
	p, f, _ := fetcher(t)
	_, err := p.fetch(testContext(t), f, newMajor, "http://127.0.0.1:1/maven")
	require.ErrorContains(t, err, "127.0.0.1:1: connect: connection refused")
}

func TestADownloadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p, f, _ := fetcher(t)
	repo := &repository{requests: make(chan struct{})}
	ctx, cancel := context.WithCancel(testContext(t))
	go func() { <-repo.requests; cancel() }()
	_, err := p.fetch(ctx, f, newMajor, serve(t, repo))
	require.ErrorIs(t, err, context.Canceled)
}

func TestTheNewestBinariesForTheDataAreUsed(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	require.NoError(t, makeEnterable(dir, 0o755))
	for _, version := range []string{"9.6.24", "15.9", "15.10 (Debian 15.10-0)", "17beta1", "16.2"} {
		bin := filepath.Join(dir, strings.Fields(version)[0], "bin")
		require.NoError(t, makeEnterable(bin, 0o755))
		for _, name := range serverPrograms {
			script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %s'\n", version)
			require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755))
		}
	}
	me := account{name: accountName(os.Geteuid()), uid: os.Geteuid(), gid: os.Getegid()}
	f := finder{account: me, workDir: dir, places: []string{filepath.Join(dir, "*", "bin")}}
	for want, version := range map[int]string{15: "15.10", 16: "16.2", 17: "17beta1"} {
		found, ok, err := f.find(testContext(t), want)
		require.NoError(t, err)
		require.True(t, ok)
		if !strings.HasPrefix(found.dir, "/usr/") { // the machine's own may be newer
			require.Equal(t, version, found.version)
		}
		require.Equal(t, want, found.major)
	}
	_, ok, err := f.find(testContext(t), 9)
	require.NoError(t, err)
	require.False(t, ok, "9 is too old even for data that it made")

	f.named = filepath.Join(dir, "9.6.24", "bin")
	_, _, err = f.find(testContext(t), 0)
	require.ErrorContains(t, err, "15 is the oldest that is supported")
	f.named = dir
	_, _, err = f.find(testContext(t), 0)
	require.ErrorContains(t, err, "PostgreSQL binaries in "+dir)
}

func TestAnArchiveAboveTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			w.Header().Set("Content-Length", "1001")
		}
		for range 1001 {
			_, _ = w.Write([]byte("x"))
		}
	}))
	t.Cleanup(endless.Close)
	for _, path := range []string{"/long", "/chunked"} {
		m, err := startMirror(testContext(t), endless.URL, 1000)
		require.NoError(t, err)
		response, err := http.Get(m.url + path)
		if err == nil {
			_, err = io.ReadAll(response.Body)
			require.NoError(t, response.Body.Close())
		}
		require.Error(t, err, path)
		http.DefaultClient.CloseIdleConnections()
		require.Error(t, errors.Join(m.stop(), err))
	}
}

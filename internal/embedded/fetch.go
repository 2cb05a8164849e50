package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// fetchable are the versions that the library can fetch. New data use newMajor.
var fetchable = map[int]embeddedpostgres.PostgresVersion{
	15: embeddedpostgres.V15, 16: embeddedpostgres.V16, 17: embeddedpostgres.V17, 18: embeddedpostgres.V18,
}

const newMajor = 18

// mavenCentral is the repository of the library's binaries.
const mavenCentral = "https://repo1.maven.org/maven2"

// choose returns binaries for data of this major version (0: there are no data yet). If the machine has none, it fetches them.
func (p *programs) choose(ctx context.Context, major int) (binaries, error) {
	fetched := filepath.Join(globEscape(p.layout.binaries()), "*", "bin")
	f := finder{account: p.account, workDir: p.layout.dir, named: p.named, places: append([]string{fetched}, binaryPlaces...)}
	found, ok, err := f.find(ctx, major)
	if err != nil || ok {
		return found, err
	}
	want := major
	if want == 0 {
		want = newMajor
	}
	found, err = p.fetch(ctx, f, want, mavenCentral)
	if err == nil {
		return found, nil
	}
	if major != 0 {
		return binaries{}, fmt.Errorf("the data in %s were made by PostgreSQL %d; its binaries are not on this machine, and "+
			"they could not be fetched (%w). Install that version (%s) or upgrade the data with pg_upgrade; the data were not changed",
			p.layout.data(), major, err, installHint(major))
	}
	return binaries{}, fmt.Errorf("this machine has no PostgreSQL %d or newer, and it could not be fetched (%w). Install it (%s), "+
		"name the directory of its binaries (%s), or give the URL of a running server", oldestMajor, err, installHint(newMajor), BinDirEnv)
}

func installHint(major int) string {
	return fmt.Sprintf("Debian, Ubuntu: apt-get install postgresql-%d; Fedora: dnf install postgresql%d-server; macOS: brew install postgresql@%d",
		major, major, major)
}

// fetch puts the binaries of a major version into DataDir, either complete or not at all. The caller holds the lifecycle lock.
func (p *programs) fetch(ctx context.Context, f finder, major int, repository string) (binaries, error) {
	version, ok := fetchable[major]
	if !ok {
		return binaries{}, fmt.Errorf("PostgreSQL %d is not published there", major)
	}
	p.log.Info("fetching PostgreSQL, which this machine does not have", "version", version, "from", repository)
	scratch := filepath.Join(p.layout.binaries(), "unfinished")
	if err := os.RemoveAll(scratch); err != nil {
		return binaries{}, explainPath("remove", scratch, err)
	}
	if err := makeEnterable(scratch, 0o755); err != nil {
		return binaries{}, explainPath("make the directory", scratch, err)
	}
	tree := filepath.Join(scratch, "tree")
	if err := download(ctx, version, scratch, tree, repository); err != nil {
		return binaries{}, err
	}
	awaitForks()
	if err := allowReading(tree); err != nil {
		return binaries{}, explainPath("allow reading", tree, err)
	}
	final := filepath.Join(p.layout.binaries(), string(version))
	if err := p.tryInitdb(ctx, f, tree, scratch); err != nil {
		return binaries{}, fmt.Errorf("PostgreSQL %s was fetched and does not work here: %w", version, err)
	}
	if err := os.RemoveAll(final); err != nil { // find has rejected these binaries
		return binaries{}, explainPath("remove", final, err)
	}
	if err := os.Rename(tree, final); err != nil {
		return binaries{}, explainPath("put in place", final, err)
	}
	if err := os.RemoveAll(scratch); err != nil {
		return binaries{}, explainPath("remove", scratch, err)
	}
	return f.probe(ctx, filepath.Join(final, "bin"))
}

// download fetches and unpacks the binaries by the library. The library offers only its Start for that, which also starts a server on a
// data directory. So download gives it a directory that looks initialized and has no configuration. The server ends at once, without a
// port, so the error of Start has no meaning. tryInitdb checks later whether the binaries are complete.
func download(ctx context.Context, version embeddedpostgres.PostgresVersion, scratch, tree, repository string) error {
	mirror, err := startMirror(ctx, repository, maxFetched)
	if err != nil {
		return err
	}
	data := filepath.Join(scratch, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return explainPath("make the directory", data, err)
	}
	major, _, _ := strings.Cut(string(version), ".")
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(major+"\n"), 0o600); err != nil {
		return explainPath("write to", data, err)
	}
	startErr := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().Version(version).Port(0).
		CachePath(filepath.Join(scratch, "archive")).RuntimePath(filepath.Join(scratch, "runtime")).
		BinariesPath(tree).DataPath(data).BinaryRepositoryURL(mirror.url).Logger(io.Discard)).Start()
	if err := errors.Join(mirror.stop(), context.Cause(ctx)); err != nil {
		return err
	}
	if err := hasPrograms(filepath.Join(tree, "bin")); err != nil {
		return errors.Join(startErr, err)
	}
	return nil
}

// awaitForks returns when each child that this process has forked runs its program. Until then, a child holds all open files of this
// process. The system refuses to run a program that a process has open for writing ("text file busy").
func awaitForks() {
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
}

// allowReading makes a tree readable by the server's account, whatever the umask was.
func allowReading(tree string) error {
	return filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		owners := info.Mode().Perm() & 0o500
		return os.Chmod(path, info.Mode().Perm()|owners>>3|owners>>6)
	})
}

// tryInitdb checks that a tree is complete. It runs initdb, which reads the libraries, extensions and texts.
func (p *programs) tryInitdb(ctx context.Context, f finder, tree, scratch string) error {
	bin, err := f.probe(ctx, filepath.Join(tree, "bin"))
	if err != nil {
		return err
	}
	dir := filepath.Join(scratch, "trial")
	if err := makePrivate(dir, p.account); err != nil {
		return err
	}
	p.bin = bin
	out, err := p.command(ctx, "initdb", "--pgdata="+dir, "--no-sync", "--auth=reject", "--locale=C", "--encoding=UTF8").CombinedOutput()
	if err != nil {
		return p.layout.explainOutput(fmt.Errorf("initdb: %w", cause(ctx, err)), string(out))
	}
	return nil
}

// mirror is a proxy between the library and the repository. The library accepts no context and hides errors; the mirror ends with a context
// and keeps the first error.
type mirror struct {
	url      string
	upstream *http.Transport
	server   *http.Server
	served   chan error // the result of the goroutine that serves

	mu  sync.Mutex // protects err
	err error      // the first failure
}

// maxFetched bounds the size of an archive of binaries, in bytes. About 15 MB are usual. The library holds the archive in memory.
const maxFetched = 256 << 20

func startMirror(ctx context.Context, repository string, limit int64) (*mirror, error) {
	target, err := url.Parse(repository)
	if err != nil {
		return nil, fmt.Errorf("repository of PostgreSQL binaries: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback to fetch PostgreSQL: %w", err)
	}
	m := &mirror{url: "http://" + listener.Addr().String(), served: make(chan error, 1),
		upstream: &http.Transport{Proxy: http.ProxyFromEnvironment}}
	silent := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      m.upstream,
		ModifyResponse: func(response *http.Response) error { return refuseFailures(response, limit) },
		ErrorHandler:   m.fail,
		ErrorLog:       silent,
	}
	m.server = &http.Server{Handler: proxy, ErrorLog: silent, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { m.served <- m.server.Serve(listener) }()
	return m, nil
}

// refuseFailures returns an error for a response that failed or is too large. Without it, the library would go on without a checksum if the
// repository does not serve one, and would read without a limit.
func refuseFailures(response *http.Response, limit int64) error {
	if response.StatusCode == http.StatusOK {
		if response.ContentLength > limit {
			return fmt.Errorf("GET %s: %d bytes are more than the limit of %d", response.Request.URL.Redacted(), response.ContentLength, limit)
		}
		response.Body = http.MaxBytesReader(nil, response.Body, limit)
		return nil
	}
	return fmt.Errorf("GET %s: %s", response.Request.URL.Redacted(), response.Status)
}

func (m *mirror) fail(_ http.ResponseWriter, r *http.Request, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = fmt.Errorf("fetch %s: %w", r.URL.Path, err)
	}
	panic(http.ErrAbortHandler) // cuts the connection, so that the library cannot get a complete answer
}

// stop waits for the goroutine that serves, and returns the first error of a request.
func (m *mirror) stop() error {
	err := m.server.Close()
	m.upstream.CloseIdleConnections()
	if served := <-m.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(err, m.err)
}

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

// fetchable are the versions that the library can fetch; newMajor is the one for new data.
var fetchable = map[int]embeddedpostgres.PostgresVersion{
	15: embeddedpostgres.V15, 16: embeddedpostgres.V16, 17: embeddedpostgres.V17, 18: embeddedpostgres.V18,
}

const newMajor = 18

// mavenCentral is where the library's binaries are published.
const mavenCentral = "https://repo1.maven.org/maven2"

// choose returns those for data of this major version (0: there are no data yet): found, else fetched.
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
			"they could not be fetched (%w). Install that version (%s) or upgrade the data with pg_upgrade; they were left as they are",
			p.layout.data(), major, err, installHint(major))
	}
	return binaries{}, fmt.Errorf("this machine has no PostgreSQL %d or newer, and it could not be fetched (%w). Install it (%s), "+
		"name the directory of its binaries (%s), or give the URL of a running server", oldestMajor, err, installHint(newMajor), BinDirEnv)
}

func installHint(major int) string {
	return fmt.Sprintf("Debian, Ubuntu: apt-get install postgresql-%d; Fedora: dnf install postgresql%d-server; macOS: brew install postgresql@%d",
		major, major, major)
}

// fetch puts the binaries of a major version into DataDir, whole or not at all. It needs the lifecycle lock.
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
	if err := os.RemoveAll(final); err != nil { // it was looked at before, and is of no use
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

// download has the library fetch and unpack. The library offers only its Start for that, which also starts a server on a data
// directory. So it gets a directory that claims to be initialised: its server ends at once, for lack of a configuration, on no
// port. Start's error therefore says nothing. Running the binaries tells whether they are whole.
func download(ctx context.Context, version embeddedpostgres.PostgresVersion, scratch, tree, repository string) error {
	mirror, err := startMirror(ctx, repository, mostFetched)
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

// awaitForks returns when each child that was forked before has executed its program. Until then it has all open files of this
// process: no system runs a program that some process can still write to ("text file busy").
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

// tryInitdb proves that a tree is whole: initdb reads its libraries, extensions and texts.
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

// mirror stands between the library, which knows no contexts and hides what went wrong, and the repository.
type mirror struct {
	url      string
	upstream *http.Transport
	server   *http.Server
	served   chan error // the end of the goroutine that serves

	mu  sync.Mutex // protects err
	err error      // the first failure
}

// mostFetched is more than an archive of binaries has, in bytes: some 15 MB are usual. The library holds it in memory.
const mostFetched = 256 << 20

func startMirror(ctx context.Context, repository string, most int64) (*mirror, error) {
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
		ModifyResponse: func(response *http.Response) error { return refuseFailures(response, most) },
		ErrorHandler:   m.fail,
		ErrorLog:       silent,
	}
	m.server = &http.Server{Handler: proxy, ErrorLog: silent, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { m.served <- m.server.Serve(listener) }()
	return m, nil
}

// refuseFailures keeps the library from going on without a checksum where the repository does not serve it, and from reading without end.
func refuseFailures(response *http.Response, most int64) error {
	if response.StatusCode == http.StatusOK {
		if response.ContentLength > most {
			return fmt.Errorf("GET %s: %d bytes are more than the %d that are taken", response.Request.URL.Redacted(), response.ContentLength, most)
		}
		response.Body = http.MaxBytesReader(nil, response.Body, most)
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
	panic(http.ErrAbortHandler) // cuts the connection: whatever the library gets now, it is not a whole answer
}

// stop waits for the goroutine that serves, and returns why a request failed.
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

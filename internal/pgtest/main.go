package pgtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// URLEnv names the environment variable with the URL of an existing server for the tests.
const URLEnv = "TEST_DATABASE_URL"

// operationTimeout bounds each operation on a server outside a test's own context.
const operationTimeout = 5 * time.Minute

// shared is the server of this process.
var shared struct {
	mu     sync.Mutex // protects what follows
	server *Server
	err    error
}

// Main runs the tests of a package (m is a *testing.M, or wraps one), checks for leaked goroutines, stops the shared
// server, and exits.
func Main(m goleak.TestingM, options ...goleak.Option) {
	goleak.VerifyTestMain(m, append(options, goleak.Cleanup(func(code int) {
		if err := closeShared(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))...)
}

// Parallel lets n tests run at once, unless -parallel is set. It is for tests that wait more than they compute.
func Parallel(n int) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // a number is never refused
	}
}

// Shared returns the server that the tests of this process share.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = openShared()
	}
	if shared.err != nil {
		t.Fatalf("pgtest: no PostgreSQL for the tests: %v", shared.err)
	}
	return shared.server
}

// openShared does not use a test's context, because the server outlives the first test that needs it.
func openShared() (*Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	if url := os.Getenv(URLEnv); url != "" {
		return useExternal(ctx, url)
	}
	return startLocal(ctx, 0)
}

func closeShared() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	err := shared.server.close(ctx)
	shared.server, shared.err = nil, errors.New("the tests are over")
	return err
}

// Package web_test opens the page in a real browser, on the recorded scene.
//
// Node's own runner runs the files *.test.mjs. They drive Debian's Chromium by playwright-core. The server has the parts of the programs: the
// door of the page and the queries of the timeline. It reads a record in PostgreSQL with an auditor's rights.
package web_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/controlplane/binaries"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
	"github.com/kuberewind/kuberewind/internal/serve/page"
	"github.com/kuberewind/kuberewind/timeline"
	"github.com/kuberewind/kuberewind/web"
)

// all runs the slow tests, too, which make test excludes.
var all = flag.Bool("all", false, "run every file of tests, not only the smoke")

// only runs some files, for who works on them.
var only = flag.String("only", "", "run the files of tests of this pattern, such as late.test.mjs")

// draw updates the pictures of docs/timeline.md.
var draw = flag.Bool("draw", false, "draw the pictures of docs/timeline.md")

func TestMain(m *testing.M) { pgtest.Main(m) }

// hostile is a name that an API server takes for objects of RBAC, whose names are segments of a path.
const hostile = `<img src=x onerror=globalThis.hostile=1>`

// recorded is the Setup of a database that holds the scene with a hostile name for one object.
func recorded(ctx context.Context, conn *pgx.Conn) error {
	if err := scenetest.Record(ctx, conn); err != nil {
		return err
	}
	renamed, err := conn.Exec(ctx, `UPDATE kuberewind.lives SET name = $1 WHERE namespace = 'shop' AND name = 'checkout'`, hostile)
	if err == nil && renamed.RowsAffected() == 0 {
		err = errors.New("the scene has no object checkout any more")
	}
	return err
}

func TestThePageInABrowser(t *testing.T) {
	chromium := need(t)
	rec, codes := open(t, pgtest.New(t, recorded)), page.NewCodes()
	at, both := servePage(t, codes, 0, cluster(rec, "")), servePage(t, codes, 0, cluster(rec, ""), cluster(rec, another))
	hasty := servePage(t, codes, time.Nanosecond, cluster(rec, ""))
	whole := serveWhole(t, open(t, pgtest.New(t, scenetest.Record)))
	made := whole.control()
	pattern := cmp.Or(*only, "smoke.test.mjs")
	if *all {
		pattern = "*.test.mjs"
	}
	if *draw {
		pattern = "pictures.test.mjs"
		t.Setenv("KUBEREWIND_DRAW", "1")
		require.NoError(t, os.MkdirAll(pictures, 0o755))
	}
	programs, err := binaries.Find(binaries.Kubectl)
	require.NoError(t, err)
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files, "no file is called %s", pattern)
	drive(t, chromium, files, "KUBEREWIND_PAGE="+at, "KUBEREWIND_CLUSTERS="+both, "KUBEREWIND_HASTY="+hasty, "KUBEREWIND_HOSTILE="+hostile,
		"KUBEREWIND_CODES="+links(t, codes.New), "KUBEREWIND_WHOLE="+whole.server.Page(), "KUBEREWIND_WHOLE_CONTROL="+made,
		"KUBEREWIND_KUBECTL="+filepath.Join(programs, binaries.Kubectl))
}

// drive runs files of tests in Node.
func drive(t *testing.T, chromium string, files []string, env ...string) {
	t.Helper()
	out, err := inNode(chromium, files, env...)
	t.Logf("%s", out)
	require.NoError(t, err)
	if *draw {
		shrink(t)
	}
}

func inNode(chromium string, files []string, env ...string) ([]byte, error) {
	node := exec.Command("node", append([]string{"--test", "--test-reporter=spec", "--test-concurrency=1"}, files...)...)
	node.Env = append(append(os.Environ(), "KUBEREWIND_CHROMIUM="+chromium), env...)
	return node.CombinedOutput()
}

// need gives the browser, or fails with one sentence.
func need(t *testing.T) string {
	t.Helper()
	if os.Getenv("SKIP_WEB") == "1" {
		t.Skip("SKIP_WEB=1")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("the page is tested in Chromium, which was not found on PATH: install the package chromium, or set SKIP_WEB=1")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Fatal("the page's tests are driven by Node, which was not found on PATH: install Node 20 or newer, or set SKIP_WEB=1")
	}
	if _, err := os.Stat("node_modules/playwright-core"); errors.Is(err, fs.ErrNotExist) {
		t.Fatal("the driver of the browser is not installed: run make test-browser, or set SKIP_WEB=1")
	}
	return chromium
}

func open(t *testing.T, db *pgtest.Database) *history.Record {
	t.Helper()
	rec, err := history.Open(t.Context(), db.Login(t, "kuberewind_auditor"), history.Options{})
	require.NoError(t, err)
	t.Cleanup(rec.Close)
	return rec
}

// another is the UID under which the record is served a second time, so that the page has two clusters to switch between.
const another = "another"

// cluster is the record under a UID; under its own, if uid is empty.
func cluster(rec *history.Record, uid string) timeline.Cluster {
	return timeline.Cluster{UID: cmp.Or(uid, rec.Cluster().UID), Name: cmp.Or(uid, rec.Cluster().Name), Record: rec}
}

// servePage gives the address of a page. patience is that of its answers; 0 suffices for the whole scene.
func servePage(t *testing.T, codes *page.Codes, patience time.Duration, clusters ...timeline.Cluster) string {
	t.Helper()
	queries := timeline.New(timeline.Options{Clusters: clusters, Patience: cmp.Or(patience, time.Minute)})
	t.Cleanup(queries.Close)
	server, err := page.Listen(page.Options{
		Address: "127.0.0.1:0", Codes: codes, Web: web.Handler(), Timelines: map[string]http.Handler{"": queries},
		Sessions: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	return server.Access().URL
}

// links gives an address that gives codes of links.
func links(t *testing.T, code func() string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, code()) }))
	t.Cleanup(server.Close)
	return server.URL
}

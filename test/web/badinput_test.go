package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/erasure"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/serve/page"
)

// password is a value that is erased while the page shows it.
const password = "hunter2-correct-horse"

// evil is what a browser would run, if a text were not set as text.
const evil = `</pre></span><img src=x onerror=globalThis.hostile=1><script>globalThis.hostile=1</script>`

// A site is a page on a record of its own, and what may happen to it while the page is open.
type site struct {
	URL     string `json:"url"`
	happens map[string]func()
}

// The page shows changes of the record while it is open, and no lost rows.
func TestThePageShowsNothingThatIsGone(t *testing.T) {
	if !*all {
		t.Skip("it takes minutes: make test-web runs it")
	}
	chromium, codes := need(t), page.NewCodes()
	sites := map[string]*site{
		"erased": erased(t, codes), "pruned": pruned(t, codes), "setBack": setBack(t, codes, func(*booktest.Shop) {}), "overtaken": setBack(t, codes, overtake),
		"away": away(t, codes), "ended": ended(t, codes), "busy": busy(t, codes), "asleep": asleep(t, codes), "hostile": evilRecord(t, codes),
	}
	happening(t, chromium, "badinput/badinput.test.mjs", sites, "KUBEREWIND_CODES="+links(t, codes.New), "KUBEREWIND_PASSWORD="+password, "KUBEREWIND_EVIL="+evil)
}

// happening runs a file of tests in Node. The actions that it asks for happen here, in the test's goroutine.
func happening(t *testing.T, chromium, file string, sites map[string]*site, env ...string) {
	t.Helper()
	told, err := json.Marshal(sites)
	require.NoError(t, err)
	happen, ended := make(chan func()), make(chan error, 1)
	env = append(env, "KUBEREWIND_SITES="+string(told), "KUBEREWIND_HAPPEN="+asked(t, sites, happen))
	var out []byte
	go func() {
		var err error
		out, err = inNode(chromium, []string{file}, env...)
		ended <- err
	}()
	for {
		select {
		case do := <-happen:
			do()
		case err := <-ended:
			t.Logf("%s", out)
			require.NoError(t, err)
			return
		}
	}
}

// asked gives the address at which Node has something happen: /site/what. It answers when that has happened.
func asked(t *testing.T, sites map[string]*site, happen chan<- func()) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/{site}/{what}", func(w http.ResponseWriter, r *http.Request) {
		s := sites[r.PathValue("site")]
		if s == nil || s.happens[r.PathValue("what")] == nil {
			http.Error(w, "nothing of that name happens", http.StatusNotFound)
			return
		}
		done := make(chan struct{})
		happen <- func() { defer close(done); s.happens[r.PathValue("what")]() }
		<-done
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// on serves the page on what a book holds.
func on(t *testing.T, codes *page.Codes, db *pgtest.Database) string {
	t.Helper()
	return servePage(t, codes, 0, cluster(open(t, db), ""))
}

func settings(b *booktest.Shop, kind delta.Type, value string) {
	fields, _ := json.Marshal(map[string]string{"value": value}) // never fails
	b.Watched(kind, "configmaps", "settings", fmt.Sprintf(`"annotations":%s,`, fields), fmt.Sprintf(`,"data":%s`, fields))
}

// erased is a record in which a value was set, and replaced.
func erased(t *testing.T, codes *page.Codes) *site {
	t.Helper()
	b := booktest.NewShop(t)
	b.List()
	settings(b, delta.Added, "plain")
	b.Now = b.Now.Add(time.Minute)
	settings(b, delta.Updated, password)
	b.Now = b.Now.Add(time.Minute)
	settings(b, delta.Updated, "other")
	return &site{on(t, codes, b.DB), map[string]func(){"erase": func() {
		db := b.DB.Connect(t)
		var number int32
		require.NoError(t, db.QueryRow(t.Context(), `SELECT cluster FROM kuberewind.clusters`).Scan(&number))
		report, err := erasure.Erase(t.Context(), db, erasure.Options{
			Cluster: number, Value: []byte(password), Reason: "test", Recorder: "test", Version: "v0",
			Keyed: func(text []byte) []byte { sum := sha256.Sum256(text); return sum[:] },
		})
		require.NoError(t, err)
		require.Positive(t, report.Deltas)
	}}}
}

// pruned is a record of two days, of which the first can go.
func pruned(t *testing.T, codes *page.Codes) *site {
	t.Helper()
	b := booktest.NewShop(t)
	b.List()
	settings(b, delta.Added, "first day")
	b.Watched(delta.Added, "pods", "short", "", "")
	b.Watched(delta.Deleted, "pods", "short", "", "")
	b.Now = booktest.Noon.AddDate(0, 0, 1)
	b.Sweep()
	b.Now = b.Now.Add(time.Hour)
	settings(b, delta.Updated, "second day")
	return &site{on(t, codes, b.DB), map[string]func(){"prune": func() { prune(t, b.DB.Connect(t), booktest.Noon.AddDate(0, 0, 1)) }}}
}

// setBack is a record that is restored from an older copy, and what happens to it then.
func setBack(t *testing.T, codes *page.Codes, then func(*booktest.Shop)) *site {
	t.Helper()
	b := booktest.NewShop(t)
	b.List()
	settings(b, delta.Added, "before the copy")
	admin, older, gone := owner(t, b.DB), b.DB.Name()+"_older", b.DB.Name()+"_gone"
	run := func(format string, args ...any) {
		_, err := admin.Exec(t.Context(), fmt.Sprintf(format, args...))
		require.NoError(t, err)
	}
	b.Close()
	run("CREATE DATABASE %s TEMPLATE %s", older, b.DB.Name())
	b.Open()
	b.Now = b.Now.Add(time.Minute)
	settings(b, delta.Updated, "after the copy")
	b.Watched(delta.Added, "pods", "later", "", "")
	b.Now = b.Now.Add(time.Minute)
	settings(b, delta.Updated, "last")
	return &site{on(t, codes, b.DB), map[string]func(){"restore": func() {
		b.Close()
		b.DB.RefuseConnections(t)
		b.DB.CutConnections(t)
		run("ALTER DATABASE %s RENAME TO %s", b.DB.Name(), gone)
		run("ALTER DATABASE %s RENAME TO %s", older, b.DB.Name())
		t.Cleanup(func() {
			_, err := admin.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+gone)
			require.NoError(t, err)
		})
		then(b)
	}}}
}

// overtake records more than there was before.
func overtake(b *booktest.Shop) {
	b.Open()
	for range 9 {
		b.Now = b.Now.Add(time.Second)
		settings(b, delta.Updated, "of the other history")
	}
}

// owner connects to the server of a database, and to another database: its own can be renamed then.
func owner(t *testing.T, db *pgtest.Database) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(db.URL())
	require.NoError(t, err)
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // The test has ended.
	return conn
}

// away is a record whose database goes and comes back.
func away(t *testing.T, codes *page.Codes) *site {
	t.Helper()
	b := booktest.NewShop(t)
	b.List()
	settings(b, delta.Added, "first")
	settings(b, delta.Updated, "plain")
	return &site{on(t, codes, b.DB), map[string]func(){
		"go": func() { b.DB.RefuseConnections(t); b.DB.CutConnections(t) }, "return": func() { b.DB.AllowConnections(t) },
	}}
}

// ended is a record whose recorder records, ends, is killed, and does not reach its cluster.
func ended(t *testing.T, codes *page.Codes) *site {
	t.Helper()
	b := booktest.NewShop(t)
	b.List()
	settings(b, delta.Added, "first")
	commit := func(at time.Time) {
		b.Now = at
		settings(b, delta.Updated, at.String())
		b.Renewed("now() + interval '1 hour'") // as if it went on to say so
	}
	return &site{on(t, codes, b.DB), map[string]func(){
		"silence": func() { commit(time.Now().Add(-3 * time.Minute)) }, "record": func() { commit(time.Now()) },
		"end": func() { b.Renewed("'-infinity'") }, "kill": func() { b.Renewed("now() - interval '11 seconds'") },
		"begin": func() { b.Close(); b.Open(); b.Renewed("now() + interval '1 hour'") },
	}}
}

// busy is a record that goes on.
func busy(t *testing.T, codes *page.Codes) *site {
	t.Helper()
	b := booktest.NewShop(t)
	b.List()
	settings(b, delta.Added, "first")
	b.Watched(delta.Added, "pods", "web", "", "")
	return &site{on(t, codes, b.DB), map[string]func(){"change": func() {
		b.Now = b.Now.Add(time.Second)
		settings(b, delta.Updated, b.Now.String())
	}, "make": func() {
		b.Now = b.Now.Add(time.Second)
		b.Watched(delta.Added, "pods", "new", "", "")
	}}}
}

// asleep is a record to which a day is added.
func asleep(t *testing.T, codes *page.Codes) *site {
	t.Helper()
	b := booktest.NewShop(t)
	b.List()
	settings(b, delta.Added, "noon")
	settings(b, delta.Updated, "evening")
	return &site{on(t, codes, b.DB), map[string]func(){"day": func() {
		b.Now = b.Now.Add(24 * time.Hour)
		settings(b, delta.Updated, "morning")
		b.Watched(delta.Added, "pods", "overnight", "", "")
	}}}
}

// evilRecord holds texts that a browser would run.
func evilRecord(t *testing.T, codes *page.Codes) *site {
	t.Helper()
	b := booktest.NewShop(t)
	text, err := json.Marshal(evil)
	require.NoError(t, err)
	b.List()
	for i, kind := range []delta.Type{delta.Added, delta.Updated, delta.Updated} {
		b.Watched(kind, "pods", "evil", fmt.Sprintf(`"annotations":{%s:%s},"labels":{"n":"%d"},`, text, text, i),
			fmt.Sprintf(`,"data":{%s:%s,"n":%d},"status":{"phase":"Running","containerStatuses":[{"name":%s,"state":{"waiting":{"reason":%s,"message":%s}}}]}`, text, text, i, text, text, text))
		b.Now = b.Now.Add(time.Minute)
	}
	return &site{on(t, codes, b.DB), nil}
}

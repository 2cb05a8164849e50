package migrations_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A recording writes the rows that a recorder writes, through the same sink.
type recording struct {
	t     *testing.T
	url   string
	admin *pgx.Conn
	cfg   postgres.Config
	sink  *postgres.Sink
	now   time.Time
	rv    int
	said  []string // notices on reader
	// reader may read what auditors may, and nothing else.
	reader *pgx.Conn
}

func record(t *testing.T) *recording {
	t.Helper()
	url, admin := migrated(t)
	_, err := migrations.Roles(t.Context(), admin)
	require.NoError(t, err)
	r := &recording{t: t, url: url, admin: admin, now: day1, rv: 1000}
	config, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { r.said = append(r.said, n.Severity+": "+n.Message) }
	config.RuntimeParams["timezone"] = "UTC"
	r.reader, err = pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.reader.Close(context.Background()) })
	run(t, r.reader, "SET SESSION AUTHORIZATION "+auditorLogin(t, admin))
	r.cfg = postgres.Config{
		URL: url, ClusterUID: "uid-of-kube-system", ClusterName: "prod", KeyFingerprint: []byte{1}, Recorder: "host-1", Version: "v1",
		Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return r.now },
	}
	r.open()
	t.Cleanup(func() { r.sink.Close() })
	return r
}

// auditorLogin makes a role that is a member of the auditors, and of no other role.
func auditorLogin(t *testing.T, admin *pgx.Conn) string {
	t.Helper()
	role := "reader_" + one[string](t, admin, "SELECT current_database()::text")
	run(t, admin, "CREATE ROLE "+role+" LOGIN")
	run(t, admin, "GRANT kuberewind_auditor TO "+role)
	t.Cleanup(func() {
		_, err := admin.Exec(context.Background(), "DROP ROLE "+role)
		require.NoError(t, err)
	})
	return role
}

func (r *recording) open() {
	r.t.Helper()
	var err error
	r.sink, err = postgres.Open(r.t.Context(), r.cfg)
	require.NoError(r.t, err)
	require.NoError(r.t, r.sink.RecordPause(r.t.Context(), time.Time{}))
}

// reopen continues as another recorder, after a pause.
func (r *recording) reopen(pause time.Duration) {
	r.t.Helper()
	r.sink.Close()
	r.now = r.now.Add(pause)
	r.open()
}

func (r *recording) stream(group, resource, kind string, namespaced bool) int32 {
	r.t.Helper()
	st, err := r.sink.Stream(r.t.Context(), postgres.StreamSpec{Group: group, Resource: resource, Kind: kind, Version: "v1", Namespaced: namespaced})
	require.NoError(r.t, err)
	return st.ID()
}

// made returns a version whose spec is the JSON text, with the next resource version.
func (r *recording) made(namespace, name, uid, spec string) *booktest.Object {
	r.t.Helper()
	r.rv++
	return booktest.NewObject(r.t, postgres.StreamSpec{Version: "v1", Kind: "Thing"}, r.rv, namespace, name, uid, "", `,"spec":`+spec)
}

func (r *recording) commit(items ...postgres.Item) {
	r.t.Helper()
	for i := range items {
		if items[i].Observed.IsZero() {
			items[i].Observed = r.now
		}
		items[i].Version = "v1"
	}
	b, err := r.sink.Encode(items)
	require.NoError(r.t, err)
	require.NoError(r.t, r.sink.Commit(r.t.Context(), b))
}

func (r *recording) listed(st int32) {
	r.t.Helper()
	r.commit(postgres.Item{Stream: st, Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Replaced, Cause: "first_list", ToRV: fmt.Sprint(r.rv)}})
}

// watched returns an event of a watch.
func watched(st int32, kind delta.Type, v *booktest.Object) postgres.Item {
	return postgres.Item{Stream: st, Kind: postgres.Delta, Type: kind, Source: delta.SourceWatch, Object: v, Position: v.RV}
}

// object calls object_at for a deployment of the namespace shop, and returns "" for none. The notices of the call are
// then in said.
func (r *recording) object(name string, at any) string {
	r.t.Helper()
	r.said = nil
	kind := "text"
	if _, ok := at.(time.Time); ok {
		kind = "timestamptz"
	}
	return r.canonical(one[*string](r.t, r.reader, "SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', $1, $2::"+kind+")::text", name, at))
}

func (r *recording) canonical(text *string) string {
	r.t.Helper()
	if text == nil {
		return ""
	}
	doc, err := patch.Canonical([]byte(*text))
	require.NoError(r.t, err)
	return string(doc)
}

// warned returns the notices of the last call as one text.
func (r *recording) warned() string { return strings.Join(r.said, "\n") }

// fails returns the message and the hint of the error of a query.
func (r *recording) fails(sql string, args ...any) string {
	r.t.Helper()
	_, err := r.reader.Exec(r.t.Context(), sql, args...)
	var pgErr *pgconn.PgError
	require.ErrorAs(r.t, err, &pgErr, sql)
	return pgErr.Message + "; " + pgErr.Hint
}

package erasure_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/erasure"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/verify"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// leaked holds characters that JSON escapes: once in a string, and twice in an object within a string.
const leaked = `hunter2-"sesame"<open>`

// scene is a record of two days.
type scene struct {
	*testing.T
	*booktest.Book
	admin *pgxpool.Pool
}

func newScene(t *testing.T) *scene {
	t.Helper()
	pods := postgres.StreamSpec{Resource: "pods", Kind: "Pod", Version: "v1", Namespaced: true}
	b := booktest.New(t, booktest.Options{Streams: []postgres.StreamSpec{pods}, Begin: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)})
	b.Commit(b.Listed("pods", delta.CauseFirstList, delta.SourceList))
	return &scene{T: t, Book: b, admin: b.DB.Pool(t)}
}

// version returns an event of a pod whose spec has these members.
func (s *scene) version(kind delta.Type, name string, members ...string) postgres.Item {
	s.Helper()
	return s.Item("pods", kind, delta.SourceWatch, s.Next("pods", "shop", name, "uid-of-"+name, "", `,"spec":{`+strings.Join(members, ",")+`}`))
}

// quote returns a text as a JSON string.
func quote(text string) string { return string(patch.Quote([]byte(text))) }

// leak records pods that hold the value in every possible place, over two days, and pods without it.
func (s *scene) leak() {
	s.Helper()
	env := `"args":[` + quote("--password="+leaked+"!") + `,"-v"]`
	applied := `"applied":` + quote(`{"spec":{"password":`+quote(leaked)+`}}`)
	html := `"applied":` + quote(`{"spec":{"password":"hunter2-\"sesame\"\u003copen\u003e"}}`)
	secret := `"data":` + quote(base64.StdEncoding.EncodeToString([]byte(leaked)))
	member := `"f:` + strings.Trim(quote(leaked), `"`) + `":{},` + `"f:` + strings.Trim(quote(leaked), `"`) + `2":{}`
	nul := `"nul":"\u0000` + strings.Trim(quote(leaked), `"`) + `"`
	s.Commit(s.version(delta.Added, "clean", `"n":1`), s.version(delta.Added, "leaky", `"n":1`), s.version(delta.Added, "gone", env))
	s.Commit(s.version(delta.Updated, "leaky", `"n":2`, env), s.version(delta.Updated, "leaky", `"n":3`, applied), s.version(delta.Updated, "leaky", html))
	s.Now = s.Now.AddDate(0, 0, 1)
	s.Commit(s.version(delta.Updated, "leaky", secret, member), s.version(delta.Updated, "leaky", nul), s.version(delta.Updated, "leaky", `"n":4`))
	s.Commit(s.Vanished("pods", &booktest.Object{Namespace: "shop", Name: "gone", UID: "uid-of-gone"}))
	s.Commit(s.version(delta.Updated, "clean", `"n":2`), s.version(delta.Added, "live", env))
}

func keyed(text []byte) []byte {
	sum := sha256.Sum256(append([]byte("key"), text...))
	return sum[:]
}

func (s *scene) erase(o erasure.Options) (erasure.Report, error) {
	conn, err := pgx.Connect(s.Context(), s.DB.URL())
	require.NoError(s, err)
	defer func() { _ = conn.Close(context.Background()) }()
	if o.Value == nil {
		o.Value = []byte(leaked)
	}
	if o.Reason == "" {
		o.Reason = "ticket 7"
	}
	o.Cluster, o.Keyed, o.Recorder, o.Version = 1, keyed, "host/1", "test"
	return erasure.Erase(s.Context(), conn, o)
}

func (s *scene) erased(o erasure.Options) erasure.Report {
	s.Helper()
	report, err := s.erase(o)
	require.NoError(s, err)
	return report
}

// where returns the tables that hold a text.
func (s *scene) where(text string) (tables []string) {
	s.Helper()
	rows, err := s.admin.Query(s.Context(), "SELECT relname::text FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace AND relkind = 'r' ORDER BY 1")
	require.NoError(s, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s, err)
	for _, name := range names {
		var n int
		require.NoError(s, s.admin.QueryRow(s.Context(), "SELECT count(*) FROM kuberewind."+name+" t WHERE strpos(t::text, $1) > 0 OR strpos(t::text, encode(convert_to($1, 'UTF8'), 'hex')) > 0", text).Scan(&n))
		if n > 0 {
			tables = append(tables, name)
		}
	}
	return tables
}

func (s *scene) chain() verify.ChainReport {
	s.Helper()
	report, err := verify.Chain(s.Context(), s.admin, s.Config.ClusterName)
	require.NoError(s, err)
	return report
}

// holds verifies the whole record.
func (s *scene) holds() *history.Record {
	s.Helper()
	record, err := history.Open(s.Context(), s.DB.URL(), history.Options{})
	require.NoError(s, err)
	s.Cleanup(record.Close)
	for f, err := range verify.Record(s.Context(), record, verify.Options{}) {
		require.NoError(s, err)
		require.Fail(s, f.Text, "%s, seq %d", f.Check, f.Seq)
	}
	require.Empty(s, s.chain().Breaks)
	return record
}

// specs returns the spec of each version of a pod.
func (s *scene) specs(name string) (specs []string) {
	s.Helper()
	rows, err := s.admin.Query(s.Context(), "SELECT object ->> 'spec' FROM kuberewind.history('test', '', 'pods', 'shop', $1) ORDER BY seq", name)
	require.NoError(s, err)
	specs, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s, err)
	return specs
}

func TestErasedValueIsNowhereAndEveryVersionHolds(t *testing.T) {
	s := newScene(t)
	s.leak()
	require.NoError(t, s.Sink.RecordServer(t.Context(), "/openapi/v3", []byte(`{"default":`+quote(leaked)+`}`)))
	record := s.holds()
	info, err := checkpoint.NewMaker(s.admin, record.Cluster().Number, record.Source(), checkpoint.Options{}).MakeOne(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), info.Objects)
	encoded := base64.StdEncoding.EncodeToString([]byte(leaked))
	require.Equal(t, []string{"deltas_p20260301", "deltas_p20260302", "documents"}, s.where("hunter2-"))
	before := s.specs("clean")
	_, err = s.admin.Exec(t.Context(), `INSERT INTO kuberewind.activity SELECT cluster, day, first_seq, last_seq, 'hour', 1, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}' FROM kuberewind.days`)
	require.NoError(t, err)

	planned := s.erased(erasure.Options{DryRun: true})
	require.Zero(t, planned.Erasure)
	require.Equal(t, []string{"deltas_p20260301", "deltas_p20260302", "documents"}, s.where("hunter2-"), "a dry run changes nothing")
	report := s.erased(erasure.Options{})
	require.Equal(t, int64(1), report.Erasure)
	require.Equal(t, int64(10), report.Deltas)
	require.Equal(t, int64(1), report.Documents)
	require.Equal(t, int64(1), report.Checkpoints)
	require.Equal(t, []string{"2026-03-01", "2026-03-02"}, report.Days)
	var counted, days int
	require.NoError(t, s.admin.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM kuberewind.activity), (SELECT count(*) FROM kuberewind.days)`).Scan(&counted, &days))
	require.Equal(t, days-2, counted, "the counts of changed days are dropped")
	require.Equal(t, []erasure.Object{
		{Resource: "pods", Namespace: "shop", Name: "leaky", UID: "uid-of-leaky", Deltas: 6},
		{Resource: "pods", Namespace: "shop", Name: "gone", UID: "uid-of-gone", Deltas: 3},
		{Resource: "pods", Namespace: "shop", Name: "live", UID: "uid-of-live", Deltas: 1, Holds: true, Paths: []string{"/spec/args/0"}},
	}, report.Objects)
	planned.DryRun, planned.Erasure = false, 1
	require.Equal(t, report, planned, "a dry run reports the same")

	require.Empty(t, s.where("hunter2-"))
	require.Empty(t, s.where(encoded))
	s.holds()
	require.Equal(t, before, s.specs("clean"))
	leaky := s.specs("leaky")
	require.Equal(t, []string{`{"n": 1}`, `{"n": 2, "args": ["--password=[erased 1]!", "-v"]}`}, leaky[:2])
	require.Equal(t, `{"n": 3, "applied": "{\"spec\":{\"password\":\"[erased 1]\"}}"}`, leaky[2])
	require.Equal(t, `{"applied": "{\"spec\":{\"password\":\"[erased 1]\"}}"}`, leaky[3])
	require.Regexp(t, `^\{"data": "\[erased 1\]", "f:\[erased 1 [0-9a-f]{8}\]": \{\}, "f:\[erased 1 [0-9a-f]{8}\]2": \{\}\}$`, leaky[4])
	require.Equal(t, `{"n": 4}`, leaky[6])
	require.Contains(t, s.specs("gone")[0], "[erased 1]")
	chain := s.chain()
	require.Equal(t, []int64{1, 10}, []int64{chain.Erasures, chain.Erased})

	var text string
	require.NoError(t, s.admin.QueryRow(t.Context(), "SELECT concat_ws(' ', cluster, erasure, erased_by = session_user, reason, scope, length(fingerprint), deltas, objects, documents, batch) FROM kuberewind.erasures").Scan(&text))
	require.Equal(t, "test 1 t ticket 7  32 10 3 1 7", text)
}

func TestARunningRecorderIsFencedAndTheNextGoesOn(t *testing.T) {
	s := newScene(t)
	s.leak()
	batch, err := s.Sink.Encode([]postgres.Item{{Kind: postgres.Position, Stream: s.Stream("pods").ID(), Observed: s.Now, Position: fmt.Sprint(s.RV)}})
	require.NoError(t, err)
	batch.SetOffset(postgres.Offset{Spool: []byte("mine"), Next: 7})
	require.NoError(t, s.Sink.Commit(s.Context(), batch))
	_, noted, err := postgres.ReadOffset(s.Context(), s.admin, s.Config.ClusterUID)
	require.NoError(t, err)
	require.Equal(t, postgres.Offset{Spool: []byte("mine"), Next: 7}, noted)
	s.erased(erasure.Options{})
	_, noted, err = postgres.ReadOffset(s.Context(), s.admin, s.Config.ClusterUID)
	require.NoError(t, err)
	require.Equal(t, postgres.Offset{}, noted, "no older spool may be written: it may hold the value")
	_, err = s.Try(s.version(delta.Updated, "live", `"n":2`))
	require.ErrorIs(t, err, postgres.ErrFenced)
	s.RV--
	s.Open()
	s.Commit(s.version(delta.Updated, "live", `"n":2`))
	require.Empty(t, s.where("hunter2-"), "the patch of the next version would have held it as an old value")
	s.holds()
	require.Equal(t, []string{`{"args": ["--password=[erased 1]!", "-v"]}`, `{"n": 2}`}, s.specs("live"))
}

func TestErasuresFollowEachOtherOnOneDelta(t *testing.T) {
	s := newScene(t)
	s.Commit(s.version(delta.Added, "pod", `"a":"first-secret","b":"second-secret"`), s.version(delta.Updated, "pod", `"b":"second-secret"`))
	s.erased(erasure.Options{Value: []byte("first-secret")})
	report := s.erased(erasure.Options{Value: []byte("second-secret")})
	require.Equal(t, int64(2), report.Erasure)
	require.Equal(t, []string{`{"a": "[erased 1]", "b": "[erased 2]"}`, `{"b": "[erased 2]"}`}, s.specs("pod"))
	s.holds()
	require.Equal(t, int64(4), s.chain().Erased)
	again := s.erased(erasure.Options{Value: []byte("second-secret")})
	require.Zero(t, again.Erasure, "nothing is left to erase, and nothing goes on record")
}

func TestAValueThatIsRecordedDuringTheErasureIsErasedToo(t *testing.T) {
	s := newScene(t)
	s.leak()
	tx, err := s.admin.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), "LOCK TABLE kuberewind.checkpoints IN ROW EXCLUSIVE MODE") // as a checkpoint maker does
	require.NoError(t, err)
	done := make(chan erasure.Report)
	go func() {
		report, err := s.erase(erasure.Options{})
		assert.NoError(t, err)
		done <- report
	}()
	require.Eventually(t, func() bool {
		var waits bool
		err := s.admin.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	}, 5*time.Minute, 10*time.Millisecond)
	s.Commit(s.version(delta.Added, "late", `"password":`+quote(leaked)))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, int64(11), (<-done).Deltas)
	require.Empty(t, s.where("hunter2-"))
	s.holds()
}

func TestErasureHidesNoTampering(t *testing.T) {
	s := newScene(t)
	s.leak()
	s.erased(erasure.Options{})
	execute := func(format string) {
		for _, table := range []string{"deltas_data", "erased_deltas", "erasures_data"} {
			_, err := s.admin.Exec(t.Context(), strings.ReplaceAll(format, "…", table))
			require.NoError(t, err)
		}
	}
	execute("CREATE TABLE public.kept_… AS SELECT * FROM kuberewind.…")
	for damage, batch := range map[string]int64{
		`UPDATE kuberewind.deltas_data SET digest = decode(repeat('00', 16), 'hex') WHERE seq = 3`: 2,
		`UPDATE kuberewind.deltas_data SET digest = decode(repeat('00', 16), 'hex') WHERE seq = 1`: 2,
		`UPDATE kuberewind.erased_deltas SET digest_before = digest_after WHERE seq = 3`:           2,
		`UPDATE kuberewind.erased_deltas SET digest_after = digest_before WHERE seq = 3`:           2,
		`DELETE FROM kuberewind.erased_deltas WHERE seq = 3`:                                       2,
		`DELETE FROM kuberewind.erasures_data`:                                                     7,
		`UPDATE kuberewind.erasures_data SET erased_by = 'nobody'`:                                 7,
		`UPDATE kuberewind.erasures_data SET reason = 'none'`:                                      7,
		`INSERT INTO kuberewind.erased_deltas SELECT cluster, 1, batch, digest, digest FROM kuberewind.deltas_data d JOIN kuberewind.erasures_data USING (cluster) WHERE d.seq = 1`: 7,
		`INSERT INTO kuberewind.erased_deltas SELECT cluster, 1, 9, digest, digest FROM kuberewind.deltas_data WHERE seq = 1`:                                                       9,
		`INSERT INTO kuberewind.erasures_data SELECT cluster, 2, 8, erased_at, erased_by, reason, scope, fingerprint, deltas, objects, documents FROM kuberewind.erasures_data`:     8,
	} {
		t.Run(damage, func(t *testing.T) {
			_, err := s.admin.Exec(t.Context(), damage)
			require.NoError(t, err)
			report := s.chain()
			execute("DELETE FROM kuberewind.…; INSERT INTO kuberewind.… SELECT * FROM public.kept_…")
			require.NotEmpty(t, report.Breaks)
			require.Equal(t, batch, report.Breaks[0].Batch, report.Breaks)
		})
	}
	require.Empty(t, s.chain().Breaks)
}

func TestErasureKeepsToItsScope(t *testing.T) {
	s := newScene(t)
	s.Commit(
		s.version(delta.Added, "a", `"x":"the-secret","y":"the-secret"`),
		s.version(delta.Added, "b", `"x":"the-secret"`))
	report := s.erased(erasure.Options{Value: []byte("the-secret"), In: "pods/shop/a", Paths: []string{"/spec/x"}})
	require.Equal(t, int64(1), report.Deltas)
	require.Equal(t, []string{`{"x": "[erased 1]", "y": "the-secret"}`}, s.specs("a"))
	require.Equal(t, []string{`{"x": "the-secret"}`}, s.specs("b"))
	require.Zero(t, s.erased(erasure.Options{Value: []byte("the-secret"), In: "nodes"}).Deltas)
	require.Zero(t, s.erased(erasure.Options{Value: []byte("the-secret"), In: "pods.apps"}).Deltas)
	_, err := s.admin.Exec(t.Context(), "UPDATE kuberewind.streams SET api_group = 'apps'")
	require.NoError(t, err)
	require.Zero(t, s.erased(erasure.Options{Value: []byte("the-secret"), In: "pods."}).Deltas)
	require.Equal(t, int64(1), s.erased(erasure.Options{Value: []byte("the-secret"), In: "pods/shop/b"}).Deltas)
	s.holds()
}

func TestTheOldestKeyframeLosesTheValueFromAPatchWithoutBase(t *testing.T) {
	s := newScene(t)
	keep := `"keep":"` + strings.Repeat("what stays the same ", 10) + `"`
	s.Commit(s.version(delta.Added, "pod", keep, `"x/y":"the-secret"`, `"the-secret/key":1`, `"the-secret/list":["one","another"]`))
	s.Now = s.Now.AddDate(0, 0, 1)
	s.Commit(s.version(delta.Updated, "pod", keep, `"the-secret/list":["another","one"]`))
	_, err := s.admin.Exec(t.Context(), "DROP TABLE kuberewind.deltas_p20260301")
	require.NoError(t, err)
	require.Equal(t, []string{"deltas_p20260302"}, s.where("the-secret"))
	require.Equal(t, int64(1), s.erased(erasure.Options{Value: []byte("the-secret")}).Deltas)
	require.Empty(t, s.where("the-secret"))
	var text string
	require.NoError(t, s.admin.QueryRow(t.Context(), "SELECT patch::text FROM kuberewind.deltas_data").Scan(&text))
	require.Contains(t, text, `"old": "[erased 1]"`)
	require.Regexp(t, `"path": "/spec/\[erased 1 [0-9a-f]{8}\]~1key"`, text)
	require.Regexp(t, `"from": "/spec/\[erased 1 [0-9a-f]{8}\]~1list/0"`, text)
}

func TestErasureIsRefusedWhole(t *testing.T) {
	s := newScene(t)
	s.leak()
	for value, reason := range map[string]string{
		"short": "less than 6 bytes", "metadata": "which each object has", "\xff\xfe\xfd\xfc\xfb\xfa": "not UTF-8", `"<>"<>"<>`: "in one way only", "erased": "in its place",
	} {
		_, err := s.erase(erasure.Options{Value: []byte(value)})
		require.ErrorIs(t, err, erasure.ErrValue)
		require.ErrorContains(t, err, reason)
	}
	for _, o := range []erasure.Options{
		{Reason: "a user committed " + leaked}, {Reason: base64.StdEncoding.EncodeToString([]byte(leaked))}, {In: "pods/shop/" + leaked}, {Paths: []string{"/spec/n", "/spec/" + leaked}},
		{Paths: []string{"/spec/a~1secret~0"}, Value: []byte("a/secret~")},
	} {
		_, err := s.erase(o)
		require.ErrorIs(t, err, erasure.ErrValue)
		require.ErrorContains(t, err, "which is recorded")
	}
	_, err := s.erase(erasure.Options{Paths: []string{"spec"}})
	require.ErrorIs(t, err, erasure.ErrScope)
	_, err = s.erase(erasure.Options{In: "/shop"})
	require.ErrorIs(t, err, erasure.ErrScope)

	// The last row is damaged, so the erasure has changed the other rows before it fails.
	_, err = s.admin.Exec(t.Context(), "UPDATE kuberewind.deltas_data SET digest = decode(repeat('00', 16), 'hex') WHERE seq = (SELECT max(seq) FROM kuberewind.deltas_data)")
	require.NoError(t, err)
	_, err = s.erase(erasure.Options{In: "pods"})
	require.ErrorIs(t, err, history.ErrDigest)
	require.ErrorContains(t, err, "replay verify says more")
	require.Equal(t, []string{"deltas_p20260301", "deltas_p20260302"}, s.where("hunter2-"))
	require.Zero(t, s.chain().Erasures)
}

func TestOnlyTheOwnerErases(t *testing.T) {
	s := newScene(t)
	s.leak()
	conn, err := pgx.Connect(t.Context(), s.DB.URL())
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(t.Context(), "SET ROLE "+migrations.WriterRole)
	require.NoError(t, err)
	_, err = erasure.Erase(t.Context(), conn, erasure.Options{Cluster: 1, Value: []byte(leaked)})
	require.ErrorIs(t, err, erasure.ErrNotOwner)
	for _, sql := range []string{"INSERT INTO kuberewind.erasures_data SELECT * FROM kuberewind.erasures_data", "DELETE FROM kuberewind.erased_deltas"} {
		_, err = conn.Exec(t.Context(), sql)
		require.ErrorContains(t, err, "permission denied")
	}
}

func TestTheReportCountsTextsThatKeepTheValue(t *testing.T) {
	s := newScene(t)
	const secret = "the-secret"
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	interrupted := s.Interrupted("pods", delta.CauseForbidden)
	interrupted.Marker.Detail = "not " + secret
	s.Commit(s.version(delta.Added, secret, `"n":1`), postgres.Item{Stream: interrupted.Stream, Kind: postgres.Excluded, UID: "left-out", Key: "shop/" + secret}, interrupted)
	report := s.erased(erasure.Options{Value: []byte(secret)})
	require.Equal(t, []int64{0, 2, 2}, []int64{report.Deltas, report.Named, report.Mentions})

	_, err := s.admin.Exec(t.Context(), "UPDATE kuberewind.gaps_data SET detail = $1 WHERE detail <> ''", "not "+encoded)
	require.NoError(t, err)
	_, err = s.admin.Exec(t.Context(), "UPDATE kuberewind.streams SET detail = $1", "not "+encoded)
	require.NoError(t, err)
	require.Equal(t, int64(2), s.erased(erasure.Options{Value: []byte(secret)}).Mentions, "in any form")
}

func TestTheReportCountsManagersWhoseNameHoldsTheValue(t *testing.T) {
	s := newScene(t)
	v := s.version(delta.Added, "pod", `"n":"the-secret"`)
	o := v.Object.(*booktest.Object)
	o.Content = patch.Doc(strings.Replace(string(o.Content), `"metadata":{`, `"metadata":{"managedFields":[{"manager":"the-secret"}],`, 1))
	s.Commit(v)
	for range 2 {
		report := s.erased(erasure.Options{Value: []byte("the-secret")})
		require.Equal(t, int64(1), report.Mentions, "the digest of the batch covers the manager")
	}
	s.holds()
}

func TestBase64OfAFileIsErasedWithItsLineEnd(t *testing.T) {
	s := newScene(t)
	values := []string{"hunter2sesame", "hunter2-sesame", "hunter2--sesame"}
	for i, value := range values {
		for j, end := range []string{"", "\n", "\r\n"} {
			s.Commit(s.version(delta.Added, fmt.Sprint("pod-", i, j), `"n":`+quote(base64.StdEncoding.EncodeToString([]byte(value+end)))))
		}
	}
	for i, value := range values {
		require.Equal(t, int64(3), s.erased(erasure.Options{Value: []byte(value)}).Deltas)
		for j := range 3 {
			require.Equal(t, []string{fmt.Sprintf(`{"n": "[erased %d]"}`, i+1)}, s.specs(fmt.Sprint("pod-", i, j)))
		}
	}
	s.holds()
}

func TestErasureRemovesTheValueFromOwnersOfLives(t *testing.T) {
	s := newScene(t)
	owned := s.version(delta.Added, "owned", `"n":1`)
	o := owned.Object.(*booktest.Object)
	text := strings.Replace(string(o.Content), `"metadata":{`, `"metadata":{"ownerReferences":[{"uid":`+quote(leaked)+`},{"uid":"other"}],`, 1)
	var err error
	o.Content, err = patch.Canonical([]byte(text))
	require.NoError(t, err)
	s.Commit(owned)
	_, err = s.admin.Exec(t.Context(), `
		INSERT INTO kuberewind.lives VALUES (1, 0, $1, 'shop', 'dropped', 'uid-of-dropped', ARRAY[$2]);
		INSERT INTO kuberewind.ends VALUES (1, 0, 0)`, pgx.QueryExecModeSimpleProtocol, s.Stream("pods").ID(), leaked)
	require.NoError(t, err)
	require.Contains(t, s.where("hunter2-"), "lives")

	require.Equal(t, int64(1), s.erased(erasure.Options{DryRun: true}).Documents)
	require.Zero(t, s.erased(erasure.Options{In: "pods/shop/owned"}).Documents, "the erasure covers only that object")
	require.Contains(t, s.where("hunter2-"), "lives")
	require.Equal(t, int64(1), s.erased(erasure.Options{}).Documents, "the record still holds it, although no delta does")
	require.Empty(t, s.where("hunter2-"))
	s.holds()
	var owners []string
	require.NoError(t, s.admin.QueryRow(t.Context(), `SELECT owners FROM kuberewind.lives WHERE name = 'owned'`).Scan(&owners))
	require.Len(t, owners, 2)
	require.Equal(t, "other", owners[1])
}

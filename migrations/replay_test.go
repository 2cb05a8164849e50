package migrations_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// served is what a test server served: for each seq, the objects alive after it, by "resource/namespace/name".
type served struct {
	*recording
	alive    []map[string]*booktest.Object // [seq]
	at       []time.Time                   // [seq]: when it was observed
	rvs      []int                         // [seq]
	versions map[string][]string           // by name, all versions served, in order
}

// serve records some days of objects that are created, changed, deleted, and created again under their names.
func serve(t *testing.T, steps int) *served {
	t.Helper()
	s := &served{recording: record(t), alive: []map[string]*booktest.Object{{}}, at: []time.Time{{}}, rvs: []int{0}, versions: map[string][]string{}}
	streams := map[string]int32{"deployments": s.stream("apps", "deployments", "Deployment", true), "nodes": s.stream("", "nodes", "Node", false)}
	for _, st := range streams {
		s.listed(st)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := range steps {
		s.now = s.now.Add(time.Duration(random.IntN(2400)) * time.Second)
		resource, namespace, name := "deployments", "shop", fmt.Sprint("d", random.IntN(4))
		if random.IntN(3) == 0 {
			resource, namespace, name = "nodes", "", fmt.Sprint("n", random.IntN(3))
		}
		key := strings.Join([]string{resource, namespace, name}, "/")
		kind, uid := delta.Added, fmt.Sprint("uid-", n)
		if before := s.alive[len(s.alive)-1][key]; before != nil {
			kind, uid = delta.Updated, before.UID
			if random.IntN(30) == 0 {
				kind = delta.Deleted
			}
		}
		v := s.made(namespace, name, uid, spec(random))
		s.commit(watched(streams[resource], kind, v))
		after := map[string]*booktest.Object{}
		for k, old := range s.alive[len(s.alive)-1] {
			after[k] = old
		}
		after[key] = v
		if kind == delta.Deleted {
			delete(after, key)
		}
		s.alive, s.at, s.rvs = append(s.alive, after), append(s.at, s.now), append(s.rvs, s.rv)
		s.versions[key] = append(s.versions[key], string(v.Content))
	}
	return s
}

// spec draws a spec whose keys and arrays are hard to patch.
func spec(random *rand.Rand) string {
	var members []string
	for _, key := range []string{"replicas", "0", "-1", "", "a/b", "c~d", "list"} {
		switch random.IntN(5) {
		case 0:
		case 1:
			members = append(members, fmt.Sprintf(`%q:null`, key))
		case 2:
			items := make([]string, random.IntN(4))
			for i := range items {
				items[i] = fmt.Sprintf(`{"name":"n%d","value":%d}`, random.IntN(5), random.IntN(3))
			}
			members = append(members, fmt.Sprintf(`%q:[%s]`, key, strings.Join(items, ",")))
		case 3:
			members = append(members, fmt.Sprintf(`%q:{"inner":%d}`, key, random.IntN(3)))
		default:
			members = append(members, fmt.Sprintf(`%q:%d.50`, key, random.IntN(9)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// snapshot returns the result of snapshot_at, by the same keys.
func (s *served) snapshot(sql string, args ...any) map[string]string {
	s.t.Helper()
	got := map[string]string{}
	for _, row := range column[[]*string](s.t, s.reader,
		`SELECT ARRAY[resource || '/' || namespace || '/' || name, object::text] FROM kuberewind.snapshot_at(`+sql+`)`, args...) {
		require.NotContains(s.t, got, *row[0])
		got[*row[0]] = s.canonical(row[1])
	}
	return got
}

func (s *served) want(seq int, resource string) map[string]string {
	want := map[string]string{}
	for key, v := range s.alive[seq] {
		if strings.HasPrefix(key, resource) {
			want[key] = string(v.Content)
		}
	}
	return want
}

func TestASnapshotHoldsWhatWasServedAtEachInstant(t *testing.T) {
	s := serve(t, 300)
	last := len(s.alive) - 1
	require.Greater(t, s.at[last].Sub(s.at[1]), 72*time.Hour, "the test needs several partitions")
	for seq := 1; seq <= last; seq += 13 {
		require.Equal(t, s.want(seq, ""), s.snapshot(`'prod', 'seq:' || $1::int`, seq), seq)
		next := seq // deltas of one moment belong together
		for next < last && s.at[next+1].Equal(s.at[seq]) {
			next++
		}
		require.Equal(t, s.want(next, ""), s.snapshot(`'', $1::timestamptz`, s.at[seq]), seq)
		require.Equal(t, s.want(next, "deployments"), s.snapshot(`'', $1::text, 'apps', 'deployments', 'shop'`, s.at[seq].Format(time.RFC3339Nano)), seq)
		require.Equal(t, s.want(seq, "nodes"), s.snapshot(`'', 'rv:' || $1::int, '', 'nodes'`, s.rvs[seq]), seq)
	}
	require.Equal(t, s.want(last, ""), s.snapshot(`'', 'now'`))
	require.Equal(t, s.want(last, "deployments"), s.snapshot(`'', 'now', 'apps'`))
	require.Equal(t, s.want(last, "deployments"), s.snapshot(`'', 'now', namespace => 'shop'`))
	require.Empty(t, s.snapshot(`'', 'now', namespace => 'other'`))
	require.Contains(t, s.fails("SELECT kuberewind.snapshot_at('', 'rv:1005')"), "name one")
	require.Contains(t, s.fails("SELECT kuberewind.snapshot_at('', 'now', 'batch')"), "holds nothing of the group 'batch'")
}

func TestAnObjectIsWhatWasServedAtEachInstantOfAllItsLives(t *testing.T) {
	s := serve(t, 300)
	lives := one[int](t, s.reader, "SELECT max(n)::int FROM (SELECT count(*) n FROM kuberewind.objects WHERE kind = 'Deployment' GROUP BY name) x")
	require.Greater(t, lives, 1, "the test needs names with several lives")
	for seq := 1; seq < len(s.alive); seq += 7 {
		name := fmt.Sprint("d", seq%4)
		want := ""
		if v := s.alive[seq]["deployments/shop/"+name]; v != nil {
			want = string(v.Content)
		}
		require.Equal(t, want, s.object(name, fmt.Sprint("seq:", seq)), seq)
		require.Equal(t, want, s.object(name, fmt.Sprint("rv:", s.rvs[seq])), seq)
		if seq+1 < len(s.alive) && s.at[seq+1].After(s.at[seq]) {
			require.Equal(t, want, s.object(name, s.at[seq]), seq)
			require.Equal(t, want, s.object(name, s.at[seq+1].Add(-time.Microsecond)), seq)
			require.Equal(t, want, s.object(name, s.at[seq+1].Add(-time.Nanosecond).Format(time.RFC3339Nano)), "an instant finer than the record is not rounded up")
		}
	}
}

func TestHistoryReturnsEveryVersionServed(t *testing.T) {
	s := serve(t, 300)
	texts := func(sql string) []string {
		var docs []string
		for _, text := range column[*string](t, s.reader, "SELECT object::text FROM kuberewind.history("+sql+") ORDER BY seq") {
			docs = append(docs, s.canonical(text))
		}
		return docs
	}
	for key, want := range s.versions {
		part := strings.Split(key, "/")
		name := fmt.Sprintf("'', NULL, '%s', '%s', '%s'", part[0], part[1], part[2])
		require.Equal(t, want, texts(name), key)
		seqs := column[int64](t, s.reader, "SELECT seq FROM kuberewind.history("+name+") ORDER BY seq")
		middle := len(seqs) / 2
		require.Equal(t, want[middle:], texts(fmt.Sprintf("%s, 'seq:%d'", name, seqs[middle])), key)
		require.Equal(t, want[middle:middle+2], texts(fmt.Sprintf("%s, 'rv:%d', 'rv:%d'", name, s.rvs[seqs[middle]], s.rvs[seqs[middle+1]])), key)
		require.Equal(t, want[:middle+1], texts(fmt.Sprintf("%s, NULL::timestamptz, '%s'::timestamptz", name, s.at[seqs[middle]].Format(time.RFC3339Nano))), key)
	}
	require.Equal(t, column[string](t, s.admin, `SELECT concat_ws(' ', seq, observed_at, occurred_at, type, source, resource_version, manager, subresource, uid, patch)
			FROM kuberewind.deltas WHERE resource = 'deployments' AND name = 'd1' ORDER BY seq`),
		column[string](t, s.reader, `SELECT concat_ws(' ', seq, observed_at, occurred_at, type, source, resource_version, manager, subresource, uid, patch)
			FROM kuberewind.history('prod', 'apps', 'deployments', 'shop', 'd1') ORDER BY seq`))
}

func TestPatchesFoldTheSameInSQLAsInGo(t *testing.T) {
	s := serve(t, 200)
	docs := map[int64]patch.Doc{}
	rows, err := s.reader.Query(t.Context(), "SELECT object_id, rv, patch::text, object::text FROM kuberewind.record_deltas ORDER BY seq")
	require.NoError(t, err)
	type step struct{ before, change string }
	var steps []step
	for rows.Next() {
		var id int64
		var rv string
		var change, object *string
		require.NoError(t, rows.Scan(&id, &rv, &change, &object))
		if object != nil {
			docs[id], err = patch.Canonical([]byte(*object))
			require.NoError(t, err)
			continue
		}
		base, err := patch.Set(docs[id], "/metadata/resourceVersion", patch.Quote([]byte(rv)))
		require.NoError(t, err)
		steps = append(steps, step{string(base), *change})
		docs[id], err = patch.Apply(base, []byte(*change))
		require.NoError(t, err)
	}
	require.NoError(t, rows.Err())
	require.NotEmpty(t, steps)
	for _, st := range steps {
		sameAsGo(t, s.reader, st.before, st.change)
	}
}

// small records one deployment of three versions, one per hour from noon of day 1.
func small(t *testing.T) (r *recording, st int32, versions []*booktest.Object) {
	t.Helper()
	r = record(t)
	st = r.stream("apps", "deployments", "Deployment", true)
	r.listed(st)
	for n, kind := range []delta.Type{delta.Added, delta.Updated, delta.Updated} {
		versions = append(versions, r.made("shop", "web", "uid-1", fmt.Sprintf(`{"replicas":%d}`, n)))
		r.commit(watched(st, kind, versions[n]))
		r.now = r.now.Add(time.Hour)
	}
	return r, st, versions
}

func TestAnInstantInAPauseGetsEstimatesWithAWarning(t *testing.T) {
	r, _, versions := small(t)
	r.reopen(8 * time.Hour) // from 14:00, the last commit, to 23:00
	st := r.stream("apps", "deployments", "Deployment", true)
	late, gone := r.made("shop", "web", "uid-1", `{"replicas":9}`), r.made("shop", "web", "uid-1", `{"replicas":9}`)
	r.now = r.now.Add(time.Minute)
	changed, deleted := watched(st, delta.Updated, late), watched(st, delta.Deleted, gone)
	changed.Occurred, deleted.Occurred = day1.Add(4*time.Hour), day1.Add(6*time.Hour)
	r.commit(changed, deleted)

	require.Equal(t, string(versions[2].Content), r.object("web", day1.Add(3*time.Hour)))
	require.Contains(t, r.warned(), "WARNING: estimated: no recorder ran from 2026-03-01 14:00:00+00 to 2026-03-01 23:00:00+00")
	require.Equal(t, string(late.Content), r.object("web", day1.Add(4*time.Hour)), "the instant is included")
	require.Equal(t, string(late.Content), r.object("web", day1.Add(5*time.Hour)))
	require.Empty(t, r.object("web", day1.Add(7*time.Hour)))
	require.Contains(t, r.warned(), "estimated")
	require.Equal(t, string(versions[1].Content), r.object("web", day1.Add(90*time.Minute)))
	require.NotContains(t, r.warned(), "estimated")
	require.Equal(t, string(versions[2].Content), r.object("web", "seq:3"), "by seq nothing is estimated")
	require.Empty(t, r.warned())
	require.Equal(t, 1, one[int](t, r.reader, "SELECT count(*)::int FROM kuberewind.snapshot_at('', $1::timestamptz)", day1.Add(5*time.Hour)))
	require.Equal(t, 0, one[int](t, r.reader, "SELECT count(*)::int FROM kuberewind.snapshot_at('', $1::timestamptz)", day1.Add(7*time.Hour)))
}

func TestAnInstantInAGapGetsAWarning(t *testing.T) {
	r, st, versions := small(t) // the clock is at 15:00, the last version of 14:00
	interrupt := func(kind delta.MarkerKind, cause delta.Cause) {
		r.commit(postgres.Item{Stream: st, Kind: postgres.Marked, Marker: delta.Marker{Kind: kind, Cause: cause, Detail: "as the server says", ToRV: fmt.Sprint(r.rv)}})
		r.now = r.now.Add(time.Hour)
	}
	interrupt(delta.Interrupted, "unreachable") // 15:00
	caught := r.made("shop", "web", "uid-1", `{"replicas":7}`)
	resumed := watched(st, delta.Updated, caught)
	resumed.Occurred = day1.Add(3*time.Hour + 30*time.Minute)
	r.commit(postgres.Item{Stream: st, Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Resumed}}, resumed) // 16:00
	r.now = r.now.Add(time.Hour)
	interrupt(delta.Interrupted, "expired") // 17:00
	missed := r.made("shop", "web", "uid-1", `{"replicas":8}`)
	r.commit(postgres.Item{Stream: st, Kind: postgres.Delta, Type: delta.Sync, Source: delta.SourceRelist, Object: missed}) // 18:00
	interrupt(delta.Replaced, "expired")

	require.Equal(t, string(versions[2].Content), r.object("web", day1.Add(3*time.Hour+15*time.Minute)))
	require.Contains(t, r.warned(), "estimated: deployments.apps was interrupted (unreachable)")
	require.Equal(t, string(caught.Content), r.object("web", day1.Add(3*time.Hour+45*time.Minute)))
	require.Equal(t, string(caught.Content), r.object("web", day1.Add(5*time.Hour+30*time.Minute)))
	require.Contains(t, r.warned(), "WARNING: versions of deployments.apps may be missing (expired) from 2026-03-01 16:00:00+00 to 2026-03-01 18:00:00+00")
	require.Equal(t, string(missed.Content), r.object("web", "seq:5"))
	require.Equal(t, string(caught.Content), r.object("web", fmt.Sprint("rv:", caught.RV)))
	require.Empty(t, r.warned(), "the gap begins after it: no other change can have the version of an update")
	require.Equal(t, string(versions[2].Content), r.object("web", fmt.Sprint("rv:", versions[2].RV)))
	require.Empty(t, r.warned())

	at := func(query string) string { return one[string](t, r.reader, query) }
	require.Equal(t, "first_list/relisted -> complete -> expired/relisted -> complete", at(`SELECT string_agg(
		CASE WHEN complete THEN 'complete' ELSE cause || coalesce('/' || outcome, '') END, ' -> ' ORDER BY from_at NULLS FIRST)
		FROM kuberewind.coverage WHERE cause IS DISTINCT FROM 'stopped'`))
	require.Equal(t, "12:00-16:00 1000-1004 false, 18:00-18:00 1005-1005 false", strings.ReplaceAll(at(`SELECT string_agg(concat(
		to_char(from_at, 'HH24:MI'), '-', to_char(to_at, 'HH24:MI'), ' ', from_rv, '-', to_rv, ' ', live), ', ' ORDER BY from_at)
		FROM kuberewind.coverage WHERE complete`), " f", " false"), "the record has ended, and the resumed gap is no hole")
}

func TestResourceVersionsCountFromTheLastRollback(t *testing.T) {
	r, st, versions := small(t)
	r.commit(watched(st, delta.Added, r.made("shop", "lost", "uid-2", `{}`))) // resource version 1004, which the restored server does not have
	r.commit(postgres.Item{Stream: st, Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: "history_reversed"}})
	r.rv = 1001
	restored := r.made("shop", "web", "uid-1", `{"replicas":50}`)
	r.commit(postgres.Item{Stream: st, Kind: postgres.Delta, Type: delta.Sync, Source: delta.SourceRelist, Object: restored},
		postgres.Item{Stream: st, Kind: postgres.Delta, Type: delta.Deleted, Source: delta.SourceInferred, Key: "shop/lost", UID: "uid-2", RV: "1002"},
		postgres.Item{Stream: st, Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Replaced, Cause: "history_reversed", ToRV: "1002", Changed: 1, Vanished: 1}})
	later := r.made("shop", "web", "uid-1", `{"replicas":51}`)
	r.commit(watched(st, delta.Updated, later))

	require.Equal(t, string(restored.Content), r.object("web", "rv:1002"))
	require.Contains(t, r.warned(), "the history of deployments.apps went backwards")
	require.Equal(t, string(later.Content), r.object("web", "rv:1003"))
	require.Empty(t, r.object("lost", "rv:1004"))
	require.Equal(t, string(versions[2].Content), r.object("web", "seq:3"))
	require.Contains(t, r.fails("SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', 'web', 'rv:1001')"), "whole only from 1002 on",
		"of web the restored version is of 1001, and the last one before is beyond it")
	require.Equal(t, []string{"web"}, column[string](t, r.reader, "SELECT name FROM kuberewind.snapshot_at('', 'rv:1003', NULL, 'deployments')"))
}

func TestInstantsOutsideTheRecordAreErrorsOrWarnings(t *testing.T) {
	r, _, versions := small(t)
	for _, at := range []string{"2026-03-01T11:59:59Z", "0001-01-01T00:00:00Z", "seq:0"} {
		require.Contains(t, r.fails("SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', 'web', $1::text)", at), "before the record, which begins at 2026-03-01 12:00:00+00", at)
	}
	require.Equal(t, string(versions[2].Content), r.object("web", day1.Add(1000*time.Hour)))
	require.Contains(t, r.warned(), "lies after the record, which ends at 2026-03-01 14:00:00+00")
	require.Equal(t, string(versions[2].Content), r.object("web", "now"))
	require.Contains(t, r.warned(), "lies after the record", "the recorder has stopped")
	require.Equal(t, string(versions[2].Content), r.object("web", "seq:77"))
	require.Contains(t, r.warned(), "seq 77 lies after the record")
	require.Equal(t, string(versions[2].Content), r.object("web", "rv:99999"))
	require.Contains(t, r.warned(), "resource version 99999 lies after the record")

	r.stream("", "configmaps", "ConfigMap", true)
	require.Empty(t, one[*string](t, r.reader, "SELECT kuberewind.object_at('', '', 'configmaps', 'shop', 'x', '2026-03-01T13:00:00Z')"))
	require.Contains(t, r.warned(), "configmaps was not yet recorded")
}

func TestInstantsAreReadInEachForm(t *testing.T) {
	r, _, versions := small(t)
	for _, at := range []string{
		"2026-03-01T13:00:00Z", "2026-03-01T14:30:00.5+01:00", "2026-03-01T13:59:59.999999999Z", "2026-03-01 13:30:00+00", "2026-03-01 13:30", "seq:2", "rv:1002",
	} {
		require.Equal(t, string(versions[1].Content), r.object("web", at), at)
	}
	for text, want := range map[string]string{
		"-10m": "00:10:00", "-1h30m": "01:30:00", "-2d": "48:00:00", "-1.5h": "01:30:00", "-100ms5us": "00:00:00.100005", "-0s": "00:00:00", "now": "00:00:00",
	} {
		require.True(t, one[bool](t, r.reader, "SELECT statement_timestamp() - at_time = $2::text::interval FROM kuberewind.record_instant($1)", text, want), text)
	}
	for _, at := range []string{"", "yesterday", "10m", "+10m", "-10", "-10x", "rv:", "rv:01", "rv:x", "seq:-1", "seq:1.5", "NOW", "infinity"} {
		require.Contains(t, r.fails("SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', 'web', $1::text)", at), "RFC 3339", at)
	}
	require.Contains(t, r.fails("SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', 'web', NULL::timestamptz)"), "give an instant")
}

func TestUnknownClustersAndResourcesAreErrorsWithAHint(t *testing.T) {
	r, _, _ := small(t)
	r.stream("", "nodes", "Node", false)
	object := func(cluster, group, resource, namespace string) string {
		return fmt.Sprintf("SELECT kuberewind.object_at(%s, %s, %s, %s, 'web', 'now')", cluster, group, resource, namespace)
	}
	require.Contains(t, r.fails(object("'test'", "'apps'", "'deployments'", "'shop'")), "holds no cluster 'test'; It holds prod.")
	require.Contains(t, r.fails(object("''", "''", "'deployments'", "'shop'")), "'deployments' of the core group; Near: deployments of apps.")
	require.Contains(t, r.fails(object("''", "NULL", "'Deployment'", "'shop'")), "Near: deployments of apps.")
	require.Contains(t, r.fails(object("''", "NULL", "'deploy'", "'shop'")), "Near: deployments of apps.")
	require.Contains(t, r.fails(object("''", "''", "'%'", "'shop'")), "kuberewind.coverage")
	require.Contains(t, r.fails(object("''", "NULL", "'deployments'", "NULL")), "name one")
	require.Contains(t, r.fails(object("''", "''", "'nodes'", "'shop'")), "do not live in namespaces")
	require.NotNil(t, one[*string](t, r.reader, object("NULL", "NULL", "'deployments'", "'shop'")+"::text"))
	require.Nil(t, one[*string](t, r.reader, object("NULL", "NULL", "'deployments'", "'other'")+"::text"))

	run(t, r.admin, `INSERT INTO kuberewind.clusters VALUES (2, 'uid-2', 'other', now(), '\x')`)
	require.Contains(t, r.fails(object("''", "'apps'", "'deployments'", "'shop'")), "more than one cluster: name one; It holds other, prod.")
}

func TestADamagedRowIsNamedAndOtherObjectsAreStillRead(t *testing.T) {
	r, st, versions := small(t)
	other := r.made("shop", "other", "uid-2", `{}`)
	r.commit(watched(st, delta.Added, other))
	run(t, r.admin, `UPDATE kuberewind.deltas_data SET patch = '[{"op":"remove","path":"/spec/nothing"}]' WHERE seq = 2`)

	require.Contains(t, r.fails("SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', 'web', 'seq:3')"), "the delta with seq 2 cannot be folded: operation 1")
	require.Contains(t, r.fails("SELECT kuberewind.history('', 'apps', 'deployments', 'shop', 'web')"), "seq 2")
	require.Contains(t, r.fails("SELECT kuberewind.snapshot_at('', 'now')"), "seq 2")
	require.Equal(t, string(versions[0].Content), r.object("web", "seq:1"))
	require.Equal(t, string(other.Content), r.object("other", "now"))

	run(t, r.admin, "ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p20260301")
	require.Contains(t, r.fails("SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', 'web', 'seq:3')"), "is the partition of its day gone?")
}

func TestAMissingPartitionIsAnErrorOnlyForQueriesThatNeedIt(t *testing.T) {
	r, st, versions := small(t)
	for n := range 2 {
		r.now = day1.AddDate(0, 0, n+1)
		versions = append(versions, r.made("shop", "web", "uid-1", fmt.Sprintf(`{"replicas":%d}`, 10+n)))
		r.commit(watched(st, delta.Updated, versions[3+n]))
	}
	quiet := r.made("shop", "quiet", "uid-2", `{}`)
	r.commit(watched(st, delta.Added, quiet))
	run(t, r.admin, "ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p20260302")

	gone := "the deltas of 2026-03-02 (seq 4 to 4) are not on record: is the partition of its day gone?"
	for _, at := range []string{"seq:4", fmt.Sprint("rv:", versions[3].RV), "2026-03-02T23:00:00Z"} {
		require.Contains(t, r.fails("SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', 'web', $1::text)", at), gone, at)
		require.Contains(t, r.fails("SELECT kuberewind.snapshot_at('', $1::text, 'apps', 'deployments')", at), gone, at)
	}
	require.Equal(t, string(versions[2].Content), r.object("web", "seq:3"), "an earlier instant does not need it")
	require.Equal(t, string(versions[4].Content), r.object("web", "now"), "an object that has changed since does not need it")
	require.Equal(t, string(quiet.Content), r.object("quiet", "now"), "a younger object does not need it")
	r.said = nil
	require.Equal(t, 4, one[int](t, r.reader, "SELECT count(*)::int FROM kuberewind.history('', 'apps', 'deployments', 'shop', 'web')"))
	require.Contains(t, r.warned(), "WARNING: "+gone)
}

func TestNowIsTheEndOfTheRecordEvenIfTheRecordersClockIsAhead(t *testing.T) {
	r, st, _ := small(t)
	r.now = time.Now().UTC().Add(time.Hour)
	ahead := r.made("shop", "web", "uid-1", `{"replicas":77}`)
	r.commit(watched(st, delta.Updated, ahead))
	require.Equal(t, string(ahead.Content), r.object("web", "now"))
	require.Empty(t, r.warned())
	require.NotEqual(t, string(ahead.Content), r.object("web", "-0s1ms"), "an instant by time is not moved")
}

func TestAVersionThatJSONBCannotHoldIsReadFromObject(t *testing.T) {
	r, st, _ := small(t)
	odd := r.made("shop", "odd", "uid-3", `{"a":"x\u0000y"}`)
	r.commit(watched(st, delta.Added, odd))
	safe, changed := patch.SafeForSQL(odd.Content)
	require.True(t, changed)
	require.Equal(t, string(safe), r.object("odd", "now"))
}

// The function may open only what it needs. The planner locks each partition that it opens.
func TestReadingOneObjectOpensOnePartition(t *testing.T) {
	s := serve(t, 150)
	last := len(s.alive) - 1
	tx, err := s.reader.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	opened := func() []string {
		return column[string](t, tx, `SELECT DISTINCT relation::regclass::text FROM pg_locks WHERE pid = pg_backend_pid() AND relation::regclass::text ~ '^kuberewind.deltas_p[0-9]*$'`)
	}
	key := "deployments/shop/d1"
	seq := last
	for s.alive[seq][key] == s.alive[seq-1][key] || s.alive[seq][key] == nil {
		seq-- // the last version is of this day
	}
	day := "kuberewind.deltas_p" + s.at[seq].UTC().Format("20060102")
	require.NotNil(t, one[*string](t, tx, "SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', 'd1', $1::timestamptz)::text", s.at[seq]))
	require.Equal(t, []string{day}, opened())
	require.NotEmpty(t, column[string](t, tx, "SELECT object::text FROM kuberewind.history('', 'apps', 'deployments', 'shop', 'd1', $1::timestamptz)", s.at[seq].Truncate(24*time.Hour)))
	for _, name := range opened() {
		require.GreaterOrEqual(t, name, day)
	}
}

func TestViewsForProgramsUseIndexesAndOnePartition(t *testing.T) {
	s := serve(t, 150)
	run(t, s.reader, "SET enable_seqscan = off") // otherwise the server reads small tables completely
	run(t, s.reader, "SET plan_cache_mode = force_custom_plan")
	run(t, s.reader, `PREPARE by_object (int, bigint, timestamptz, timestamptz) AS
		SELECT * FROM kuberewind.record_deltas WHERE cluster = $1 AND object_id = $2 AND observed_at BETWEEN $3 AND $4 ORDER BY seq`)
	run(t, s.reader, `PREPARE by_seq (int, bigint, timestamptz, timestamptz) AS
		SELECT * FROM kuberewind.record_deltas WHERE cluster = $1 AND seq >= $2 AND observed_at BETWEEN $3 AND $4 ORDER BY seq`)
	for statement, index := range map[string]string{"by_object": "object_id", "by_seq": "seq"} {
		shape := strings.Join(column[string](t, s.reader, "EXPLAIN (COSTS OFF) EXECUTE "+statement+" (1, 5, '2026-03-02 10:00Z', '2026-03-02 12:00Z')"), "\n")
		require.Equal(t, []string{"deltas_p20260302"}, partitionsIn(shape), shape)
		require.Contains(t, shape, "Index Scan", shape)
		require.Contains(t, shape, "Index Cond: ((cluster = 1) AND ("+index, shape)
	}
	run(t, s.reader, "SET plan_cache_mode = force_generic_plan")
	shape := strings.Join(column[string](t, s.reader, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE by_object (1, 5, '2026-03-02 10:00Z', '2026-03-02 12:00Z')"), "\n")
	require.Contains(t, shape, "Subplans Removed", "a generic plan prunes partitions when it runs")
}

func TestAnAuditorReadsTheViewsForUsersAndPrograms(t *testing.T) {
	r, _, _ := small(t)
	views := column[string](t, r.admin, "SELECT relname::text FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace AND relkind = 'v'")
	require.True(t, slices.Contains(views, "coverage") && slices.Contains(views, "record_deltas"))
	for _, view := range views {
		run(t, r.reader, "SELECT * FROM kuberewind."+view)
	}
	for _, sql := range []string{
		"SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', 'web', now())",
		"SELECT * FROM kuberewind.snapshot_at('', now())",
		"SELECT * FROM kuberewind.history('', 'apps', 'deployments', 'shop', 'web')",
		"SELECT kuberewind.apply_patch('{}', '[]')",
	} {
		run(t, r.reader, sql)
	}
	_, err := r.reader.Exec(t.Context(), "DELETE FROM kuberewind.checkpoints")
	require.ErrorContains(t, err, "permission denied")

	// The functions do not resolve names in the caller's search_path.
	run(t, r.admin, "CREATE SCHEMA trap")
	run(t, r.admin, "CREATE FUNCTION trap.length(text) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$")
	run(t, r.admin, "GRANT USAGE ON SCHEMA trap TO PUBLIC")
	run(t, r.reader, "SET search_path = trap, pg_catalog")
	run(t, r.reader, "SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', 'web', 'rv:1002')")
}

func TestTheWriterMakesAndDropsCheckpoints(t *testing.T) {
	url, _ := withRoles(t)
	tx := as(t, url, "kuberewind_writer")
	run(t, tx, `INSERT INTO kuberewind.checkpoints VALUES (1, 9, now(), now(), 1, 1, 1, '\x', '{}')`)
	run(t, tx, `INSERT INTO kuberewind.checkpoint_blocks VALUES (1, 9, 0, 1, '\x', '\x')`)
	require.Equal(t, 1, one[int](t, tx, "SELECT count(*)::int FROM kuberewind.record_checkpoints JOIN kuberewind.record_checkpoint_blocks USING (cluster, checkpoint)"))
	denied(t, tx, "UPDATE kuberewind.checkpoints SET objects = 2")
	run(t, tx, "DELETE FROM kuberewind.checkpoint_blocks")
	run(t, tx, "DELETE FROM kuberewind.checkpoints")
	require.Equal(t, "e", one[string](t, tx, "SELECT attstorage::text FROM pg_attribute WHERE attrelid = 'kuberewind.checkpoint_blocks'::regclass AND attname = 'data'"))
}

package postgres

import (
	"context"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/migrations"
)

func (r *recording) openWith(change func(*Config)) error {
	r.t.Helper()
	cfg := r.cfg
	change(&cfg)
	s, err := Open(context.Background(), cfg)
	if err == nil {
		s.Close()
	}
	return err
}

func TestAnotherKeyIsRefused(t *testing.T) {
	r := record(t, newDatabase(t))
	err := r.openWith(func(c *Config) { c.KeyFingerprint = []byte{9} })
	require.ErrorIs(t, err, ErrKeyMismatch)
	require.Equal(t, Permanent, ClassOf(err))
	require.Equal(t, int64(1), one[int64](t, r.db, `SELECT epoch FROM kuberewind.heads WHERE cluster = $1`, r.cluster()), "the refused recorder has not taken over")
}

func TestNameOfAnotherClusterIsRefused(t *testing.T) {
	r := record(t, newDatabase(t))
	other := newUID()
	err := r.openWith(func(c *Config) { c.ClusterUID = other })
	require.ErrorIs(t, err, ErrNameTaken)
	require.ErrorContains(t, err, r.cfg.ClusterName)
	require.NoError(t, r.openWith(func(c *Config) { c.ClusterUID, c.ClusterName = other, "other" }))
	require.ErrorIs(t, r.openWith(func(c *Config) { c.ClusterUID = other }), ErrNameTaken, "a cluster cannot be renamed to it either")
	require.Error(t, r.openWith(func(c *Config) { c.ClusterName = "" }))
}

func TestClusterIsRenamed(t *testing.T) {
	r := record(t, newDatabase(t))
	r.sink.Close()
	r.cfg.ClusterName = "production"
	r.open()
	require.Equal(t, []string{"production"}, all[string](t, r.db, `SELECT name FROM kuberewind.clusters`))
}

func TestSchemaOfAnotherVersionIsRefused(t *testing.T) {
	r := record(t, newDatabase(t))
	for version, want := range map[string]error{"999": migrations.ErrNewer, "110": migrations.ErrOlder, "105": migrations.ErrUnreleased} {
		r.db.exec(t, `CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE RETURN `+version)
		err := r.openWith(func(*Config) {})
		require.ErrorIs(t, err, want)
		require.Equal(t, Permanent, ClassOf(err))
	}
	r.db.exec(t, `DROP SCHEMA kuberewind CASCADE`)
	require.ErrorIs(t, r.openWith(func(*Config) {}), migrations.ErrMissing)
}

func TestAnUnreachableDatabaseIsATransientError(t *testing.T) {
	r := record(t, newDatabase(t))
	err := r.openWith(func(c *Config) { c.URL = "postgres://nobody@127.0.0.1:1/none?sslmode=disable" })
	require.Equal(t, Connection, ClassOf(err))
	require.True(t, ClassOf(err).Transient())
	require.Error(t, r.openWith(func(c *Config) { c.URL = "postgres://%%" }))
	err = r.openWith(func(c *Config) { c.URL = r.db.Login(t) })
	require.Equal(t, Permanent, ClassOf(err))
	require.ErrorContains(t, err, migrations.WriterRole)
}

func TestEachTakeoverIsAnEpochAndAPause(t *testing.T) {
	r := record(t, newDatabase(t))
	require.Equal(t, Info{Cluster: r.cluster(), Epoch: 1, Observed: noon, Verified: noon, Started: noon}, utcInfo(r.sink.Info()))
	r.now = noon.Add(time.Minute)
	r.commit(watched(r.pods(), delta.Added, made(t, "a", "x", newUID(), "1", `1`)))
	head := all[string](t, r.db, `SELECT encode(digest, 'hex') FROM kuberewind.heads WHERE cluster = $1`, r.cluster())[0]
	r.now = noon.Add(time.Hour)
	r.reopen()
	require.Equal(t, head, hex.EncodeToString(r.sink.Info().Head))
	require.JSONEq(t, `{"include":["*"]}`, string(r.sink.Info().Config))
	require.Equal(t, Info{Cluster: r.cluster(), Epoch: 2, AfterSeq: 1, Observed: noon.Add(time.Minute), Verified: noon, Started: noon.Add(time.Hour), Resumed: true}, utcInfo(r.sink.Info()))
	require.Equal(t, []string{"2 00:59:00 1"},
		all[string](t, r.db, `SELECT format('%s %s %s', epoch, to_at - from_at, after_seq) FROM kuberewind.pauses WHERE cluster = $1`, r.cfg.ClusterName))
	require.Equal(t, []string{`1 0 test v0 ["*"]`, `2 1 test v0 ["*"]`},
		all[string](t, r.db, `SELECT format('%s %s %s %s %s', epoch, after_seq, recorder, version, config -> 'include') FROM kuberewind.epochs WHERE cluster = $1 ORDER BY epoch`, r.cluster()))
}

func TestAPauseBeginsAtTheLastObservation(t *testing.T) {
	r := record(t, newDatabase(t))
	r.now = noon.Add(time.Hour)
	r.sink.Close()
	s, err := Open(t.Context(), r.cfg)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.RecordPause(t.Context(), noon.Add(50*time.Minute)))
	pauses := func() []string {
		return all[string](t, r.db, `SELECT format('%s %s', epoch, to_at - from_at) FROM kuberewind.pauses WHERE cluster = $1 ORDER BY epoch`, r.cfg.ClusterName)
	}
	require.Equal(t, []string{"2 00:10:00"}, pauses())
	r.open()
	require.Equal(t, []string{"2 00:10:00", "3 01:00:00"}, pauses(), "the earlier observation was lost")
	require.ErrorIs(t, s.RecordPause(t.Context(), noon), ErrFenced)
}

func utcInfo(i Info) Info {
	i.Observed, i.Verified, i.Started, i.Head, i.Config = i.Observed.UTC(), i.Verified.UTC(), i.Started.UTC(), nil, nil
	return i
}

func TestClustersRegisteredAtOnceGetDifferentNumbers(t *testing.T) {
	r := record(t, newDatabase(t))
	const clusters = 8
	errs := make(chan error)
	for range clusters {
		go func() {
			errs <- r.openWith(func(c *Config) {
				uid := newUID()
				c.ClusterUID, c.ClusterName = uid, uid
			})
		}()
	}
	for range clusters {
		require.NoError(t, <-errs)
	}
	require.Equal(t, clusters+1, one[int](t, r.db, `SELECT count(*) FROM kuberewind.heads`))
}

func TestCommitsWaitForTheDiskWhateverTheServerSetting(t *testing.T) {
	db := newDatabase(t)
	db.exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
	r := record(t, db)
	var setting string
	require.NoError(t, r.sink.cfg.Pool.QueryRow(t.Context(), `SHOW synchronous_commit`).Scan(&setting))
	require.Equal(t, "on", setting)
}

func TestSessionsHaveDifferentNames(t *testing.T) {
	db := newDatabase(t)
	for given, want := range map[string]string{"": "kuberewind test", "&application_name=ours": "ours"} {
		pool, err := NewPool(t.Context(), db.url+given, "kuberewind test")
		require.NoError(t, err)
		defer pool.Close()
		var name string
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()`).Scan(&name))
		require.Equal(t, want, name)
	}
}

func TestThePoolOfTheCallerStaysOpen(t *testing.T) {
	db := newDatabase(t)
	pool, err := NewPool(t.Context(), db.url, "test")
	require.NoError(t, err)
	defer pool.Close()
	r := record(t, db, func(c *Config) { c.Pool = pool })
	r.sink.Close()
	require.NoError(t, pool.Ping(t.Context()))
}

func TestDocumentsOfTheServerAreRecordedWhenTheyChange(t *testing.T) {
	r := record(t, newDatabase(t))
	say := func(path string, content []byte) {
		t.Helper()
		r.now = r.now.Add(time.Second)
		require.NoError(t, r.sink.RecordServer(t.Context(), path, content))
	}
	say("/openapi", nil)
	say("/version", []byte(`{"major":"1"}`))
	say("/version", []byte(`{"major":"1"}`))
	say("/version", []byte(`{"major":"2"}`))
	say("/version", nil)
	say("/version", nil)
	r.reopen()
	say("/version", nil)
	say("/version", []byte(`{"major":"1"}`))
	r.now = noon
	say("/version", []byte(`{"nul":"\u0000"}`))
	require.ErrorIs(t, r.sink.RecordServer(t.Context(), "/version", []byte(`<html>`)), errDocument)
	require.Equal(t, []string{`{"major": "1"}`, `{"major": "2"}`, ``, `{"major": "1"}`, `{"nul": "` + "\uFFFD" + `"}`},
		all[string](t, r.db, `SELECT coalesce(content::text, '') FROM kuberewind.server WHERE cluster = $1 AND path = '/version' ORDER BY observed_at`, r.cfg.ClusterName))
	require.Equal(t, 3, one[int](t, r.db, `SELECT count(*) FROM kuberewind.documents WHERE cluster = $1`, r.cluster()))
	require.Equal(t, 5, one[int](t, r.db, `SELECT count(*) FROM kuberewind.server_data WHERE cluster = $1`, r.cluster()))
}

func TestStatusReportsTheStateOfEachStream(t *testing.T) {
	r := record(t, newDatabase(t))
	pods, nodes := r.pods(), r.stream(StreamSpec{Resource: "nodes", Kind: "Node"})
	r.now = noon.Add(time.Minute)
	r.commit(listed(pods, delta.SourceList, made(t, "a", "x", newUID(), "5", `1`)), replacedBy(pods, delta.CauseFirstList, "10"), interruptedBy(nodes, "forbidden", "no"))
	status, err := ReadStatus(t.Context(), r.db.admin)
	require.NoError(t, err)
	require.Len(t, status.Clusters, 1)
	c := status.Clusters[0]
	require.Equal(t, r.cfg.ClusterName, c.Name)
	require.Equal(t, "test v0", c.Recorder+" "+c.Version)
	require.Equal(t, noon.Add(time.Minute), c.ObservedAt.UTC())
	require.Equal(t, noon.Add(time.Minute), c.CommittedAt.UTC())
	require.Equal(t, []int64{1, 1, 1}, []int64{c.Seq, c.Batch, c.Epoch})
	require.Len(t, c.Streams, 2)
	require.Equal(t, "nodes interrupted forbidden: no", c.Streams[0].Resource+" "+string(c.Streams[0].State)+" "+c.Streams[0].Detail)
	require.Equal(t, &OpenGap{Cause: "forbidden", Detail: "no"}, c.Streams[0].Gap)
	require.Equal(t, "pods live 10", c.Streams[1].Resource+" "+string(c.Streams[1].State)+" "+c.Streams[1].Position)
	require.Equal(t, int64(1), c.Streams[1].Living)
	require.Nil(t, c.Streams[1].Gap)
	require.Zero(t, c.Gaps)

	r.now = noon.Add(time.Hour)
	r.commit(replacedBy(pods, "expired", "20"), interruptedBy(pods, "forbidden", "no"), Item{Stream: pods.ID(), Kind: Marked, Marker: delta.Marker{Kind: delta.Resumed}})
	status, err = ReadStatus(t.Context(), r.db.admin)
	require.NoError(t, err)
	gaps := status.Clusters[0].Gaps
	require.Equal(t, PastGaps{Missed: 1, Last: r.now}, PastGaps{gaps.Missed, gaps.Last.UTC()})
}

func TestHooksReportWhatWasEncodedAndCommitted(t *testing.T) {
	var encoded []EncodeStats
	var committed []CommitStats
	r := record(t, newDatabase(t), func(c *Config) {
		c.Hooks.Encoded = func(s EncodeStats) { encoded = append(encoded, s) }
		c.Hooks.Committed = func(s CommitStats) { committed = append(committed, s) }
	})
	pods := r.pods()
	x := made(t, "a", "x", newUID(), "1", `1`)
	r.commit(watched(pods, delta.Added, x), watched(pods, delta.Added, x))
	want := EncodeStats{Items: 2, Rows: 1, Types: [5]int{delta.NumberAdded: 1}, Keyframes: 1, Skipped: 1}
	require.Equal(t, []EncodeStats{want}, encoded)
	require.Len(t, committed, 1)
	require.Equal(t, want, committed[0].EncodeStats)
	require.Equal(t, []int64{1, 1, 1}, []int64{committed[0].Batch, committed[0].LastSeq, int64(committed[0].Attempts)})
	require.Positive(t, committed[0].Bytes)
	require.Equal(t, noon, committed[0].Observed)
}

func TestTheGapHookReportsAGapAfterItsCommit(t *testing.T) {
	var told []GapChange
	r := record(t, newDatabase(t), func(c *Config) {
		c.Hooks.Gap = func(g GapChange) { told = append(told, g) }
	})
	pods := r.pods()
	first := replacedBy(pods, delta.CauseFirstList, "10")
	first.Marker.Appeared = 2
	r.commit(first)
	want := GapChange{Resource: "pods", Opened: true, Closed: true, Cause: "first_list", ToRV: "10", ToTime: noon, Outcome: "relisted", Found: Found{Appeared: 2}}
	require.Equal(t, []GapChange{want}, told)
	require.True(t, told[0].Missed())

	r.commit(interruptedBy(pods, "forbidden", "no"))
	require.Equal(t, GapChange{Resource: "pods", Opened: true, Cause: "forbidden", Detail: "no", FromRV: "10", FromTime: noon}, told[1])
	require.Equal(t, 1, r.sink.OpenGaps())
	r.reopen()
	pods = r.pods()
	require.Equal(t, 1, r.sink.OpenGaps(), "an earlier recorder did not close it")
	r.now = noon.Add(time.Minute)
	r.commit(Item{Stream: pods.ID(), Kind: Marked, Marker: delta.Marker{Kind: delta.Resumed}})
	require.Equal(t, GapChange{Resource: "pods", Closed: true, Cause: "forbidden", Detail: "no", FromRV: "10", FromTime: noon, ToRV: "10", ToTime: r.now, Outcome: "resumed"}, told[2])
	require.False(t, told[2].Missed())
	require.Zero(t, r.sink.OpenGaps())
	require.Len(t, told, 3)
}

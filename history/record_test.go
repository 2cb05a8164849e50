package history

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestOpenSelectsAClusterByName(t *testing.T) {
	b := newBook(t, 1)
	_, err := Open(t.Context(), b.DB.URL(), Options{Cluster: "other"})
	require.ErrorIs(t, err, ErrNoCluster)
	require.ErrorContains(t, err, "it holds test")
	second := b.Config
	second.ClusterUID, second.ClusterName = "other", "other"
	s, err := postgres.Open(t.Context(), second)
	require.NoError(t, err)
	s.Close()
	_, err = Open(t.Context(), b.DB.URL(), Options{})
	require.ErrorIs(t, err, ErrManyClusters)
	r, err := Open(t.Context(), b.DB.URL(), Options{Cluster: "other"})
	require.NoError(t, err)
	defer r.Close()
	_, err = r.Resolve(t.Context(), Now(), Scope{})
	require.ErrorIs(t, err, ErrEmpty)
	all, err := Clusters(t.Context(), b.DB.URL())
	require.NoError(t, err)
	require.Len(t, all, 2)
}

// pgdial asks the server about a silent session by its application_name, so each session needs its own.
func TestEachConnectionHasItsOwnApplicationName(t *testing.T) {
	b := newBook(t, 1)
	r := b.record(t)
	names := map[string]bool{}
	for range 2 {
		conn, err := r.Pool().Acquire(t.Context())
		require.NoError(t, err)
		defer conn.Release()
		var name string
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT current_setting('application_name')`).Scan(&name))
		require.Regexp(t, `^kuberewind history [A-Z2-7]{16}$`, name)
		names[name] = true
	}
	require.Len(t, names, 2)
}

func TestOpenRefusesAnOlderOrUnreleasedSchema(t *testing.T) {
	b := newBook(t, 0)
	for version, want := range map[string]error{"110": migrations.ErrOlder, "105": migrations.ErrUnreleased} {
		b.DB.Exec(t, `CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN `+version)
		_, err := Open(t.Context(), b.DB.URL(), Options{})
		require.ErrorIs(t, err, want)
	}
}

func TestAnAuditorReadsEverythingAndWritesNothing(t *testing.T) {
	b := newBook(t, 1)
	rnd := random(t)
	b.scribble(rnd, 10)
	_, err := b.checkpointer(t, checkpoint.Options{}).MakeOne(t.Context())
	require.NoError(t, err)
	b.scribble(rnd, 3)
	require.NoError(t, b.Sink.RecordServer(t.Context(), "/version", []byte(`{"major":"1"}`)))

	r, err := Open(t.Context(), b.DB.Login(t, migrations.AuditorRole), Options{})
	require.NoError(t, err)
	defer r.Close()
	got, stats := rebuilt(t, r, resolved(t, r, AtSeq(int64(len(b.pages))), Scope{}), Scope{}, RebuildOptions{})
	require.Equal(t, b.liveAt(bySeq(int64(len(b.pages)))), got)
	require.Positive(t, stats.Checkpoint)
	_, err = r.Completeness().Coverage(t.Context(), Scope{})
	require.NoError(t, err)
	_, err = r.Completeness().Epochs(t.Context())
	require.NoError(t, err)
	documents, err := r.Server().Documents(t.Context(), b.Now, "")
	require.NoError(t, err)
	require.JSONEq(t, `{"major":"1"}`, string(documents["/version"].Content))
	_, err = r.Pool().Exec(t.Context(), `DELETE FROM kuberewind.checkpoints`)
	require.Error(t, err)

	stranger, err := Open(t.Context(), b.DB.Login(t), Options{})
	if err == nil {
		stranger.Close()
	}
	require.ErrorContains(t, err, migrations.AuditorRole, "the error names the missing role")
}

func TestFollowYieldsExistingAndNewDeltas(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`), b.set(0, "a", "y", `1`))
	r := b.record(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var docs []string
	for v, err := range r.FollowVersions(ctx, Query{Scope: Scope{Name: "x"}}) {
		require.NoError(t, err)
		docs = append(docs, string(v.Doc))
		switch len(docs) {
		case 1:
			b.commit(b.set(0, "a", "x", `2`))
		case 2:
			require.Equal(t, docs[0], string(v.Before))
			b.commit(b.remove(0, "a", "x"))
			b.commit(b.set(0, "a", "x", `3`)) // another life of the name
		case 4:
			require.Nil(t, v.Before)
			cancel()
		}
	}
	require.Len(t, docs, 4)
	n := 0
	for _, err := range r.Follow(t.Context(), Query{ToSeq: 3}) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 3, n, "it ends with the query")
}

func TestALongLifeIsReadInBatches(t *testing.T) {
	b := newBook(t, 1)
	for range 5 {
		var items []postgres.Item
		for range 500 {
			items = append(items, b.set(0, "a", "x", strconv.Itoa(b.RV)))
		}
		b.commit(items...)
		b.Now = b.Now.Add(12 * time.Hour)
	}
	r := b.record(t)
	n := 0
	for v, err := range r.Versions(t.Context(), Query{Scope: Scope{Streams: []int32{1}, Namespace: "a", Name: "x"}}) {
		require.NoError(t, err)
		require.Equal(t, string(b.pages[n].thing.Content), string(v.Doc))
		n++
	}
	require.Equal(t, 2_500, n)
	p := resolved(t, r, AtSeq(2_376), Scope{Name: "x"})
	got, _ := rebuilt(t, r, p, Scope{Name: "x"}, RebuildOptions{})
	require.Equal(t, map[string]string{"1 a/x": string(b.pages[2_375].thing.Content)}, got)
}

func TestTwoLivesOfOneNameStaySeparate(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`), b.remove(0, "a", "x"), b.set(0, "a", "x", `2`))
	r := b.record(t)
	var lives []Life
	for l, err := range r.Lives(t.Context(), LifeQuery{Scope: Scope{Name: "x"}}) {
		require.NoError(t, err)
		lives = append(lives, l)
	}
	require.Len(t, lives, 2)
	require.Equal(t, []int64{1, 2, 3, 0}, []int64{lives[0].ObjectID, lives[0].DeletedSeq, lives[1].ObjectID, lives[1].DeletedSeq})
	require.NotEqual(t, lives[0].UID, lives[1].UID)
}

func TestStreamRVReturnsTheResourceVersionAtAPoint(t *testing.T) {
	b := newBook(t, 2)
	b.commit(b.set(0, "a", "x", `1`))                                                                  // 11
	b.commit(b.set(1, "a", "x", `1`))                                                                  // 12
	b.commit(b.set(0, "a", "x", `2`))                                                                  // 13
	b.commit(postgres.Item{Stream: b.Stream(things(1)).ID(), Kind: postgres.Position, Position: "40"}) // a bookmark
	r := b.record(t)
	for _, c := range []struct {
		at   Instant
		want [2]string
	}{{AtSeq(1), [2]string{"11", "10"}}, {AtSeq(2), [2]string{"11", "12"}}, {AtSeq(3), [2]string{"13", "40"}}} {
		p := resolved(t, r, c.at, Scope{})
		for i, want := range c.want {
			rv, err := r.StreamRV(t.Context(), p, int32(i+1))
			require.NoError(t, err)
			require.Equal(t, want, rv, "stream %d at %s", i+1, c.at)
		}
	}
}

func TestDiscoveryReturnsTheRecordedDocumentOfTheTime(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`))
	r := b.record(t)
	resources, err := r.Server().Discovery(t.Context(), b.Now)
	require.NoError(t, err)
	require.Equal(t, []Resource{{
		Group: "example.com", Version: "v1", Resource: "things0", Kind: "Thing", Singular: "thing", Verbs: []string{"list", "watch"}, Namespaced: true, Preferred: true,
	}}, resources, "derived from the streams")

	text := func(version string) []byte {
		return []byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"apps"},"versions":[
			{"version":"` + version + `","resources":[{"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced",
			"singularResource":"deployment","shortNames":["deploy"],"categories":["all"],"verbs":["get","list","watch"]}],"freshness":"Current"}]}]}`)
	}
	require.NoError(t, b.Sink.RecordServer(t.Context(), "/apis", text("v1beta1")))
	before := b.Now
	b.Now = b.Now.Add(time.Hour)
	require.NoError(t, b.Sink.RecordServer(t.Context(), "/apis", text("v1")))
	for at, version := range map[time.Time]string{before.Add(-time.Hour): "v1beta1", before: "v1beta1", b.Now.Add(-time.Second): "v1beta1", b.Now: "v1", b.Now.Add(time.Hour): "v1"} {
		resources, err := r.Server().Discovery(t.Context(), at)
		require.NoError(t, err)
		require.Equal(t, []Resource{{
			Group: "apps", Version: version, Resource: "deployments", Kind: "Deployment", Singular: "deployment", ShortNames: []string{"deploy"}, Categories: []string{"all"},
			Verbs: []string{"get", "list", "watch"}, Namespaced: true, Preferred: true,
		}}, resources, at)
	}
}

func TestDocumentReturnsOnlyTheExactPathAtThatTime(t *testing.T) {
	b := newBook(t, 1)
	first := b.Now
	say := func(path, text string) {
		var body []byte
		if text != "" {
			body = []byte(text)
		}
		require.NoError(t, b.Sink.RecordServer(t.Context(), path, body))
	}
	say("/api", `{"v":1}`)
	say("/apis", `{"v":2}`)
	b.Now = first.Add(time.Hour)
	say("/api", `{"v":3}`)
	b.Now = first.Add(2 * time.Hour)
	say("/api", "")
	r := b.record(t)
	for _, c := range []struct {
		after time.Duration
		path  string
		want  string
	}{
		{-time.Hour, "/api", `{"v":1}`}, {0, "/api", `{"v":1}`}, {time.Hour - time.Second, "/api", `{"v":1}`}, {time.Hour, "/api", `{"v":3}`},
		{2 * time.Hour, "/api", ""}, {2 * time.Hour, "/apis", `{"v":2}`}, {0, "/ap", ""}, {0, "/apis/apps", ""},
	} {
		d, found, err := r.Server().Document(t.Context(), first.Add(c.after), c.path)
		require.NoError(t, err)
		require.Equal(t, c.want != "", found, c)
		require.Equal(t, c.want, string(d.Content), c)
		if found {
			all, err := r.Server().Documents(t.Context(), first.Add(c.after), c.path)
			require.NoError(t, err)
			require.Equal(t, all[c.path], d)
		}
	}
}

// days returns a record of five days: x changes on each day, and still changes only on the first.
func days(t *testing.T) *book {
	b := newBook(t, 1)
	b.days()
	return b
}

func (b *book) days() {
	b.commit(b.set(0, "a", "still", `1`))
	for i := range 5 {
		b.commit(b.set(0, "a", "x", strconv.Itoa(i)))
		b.commit(b.set(0, "a", "x", strconv.Itoa(i+100)))
		b.Now = b.Now.AddDate(0, 0, 1)
	}
}

func TestAMissingDayIsAnErrorOnlyIfItIsNeeded(t *testing.T) {
	b := days(t) // seq 1 to 3 on the first day, two on each after
	r := b.record(t)
	b.DB.Exec(t, `ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p20260312`)
	var missing *MissingDayError
	var seqs []int64
	failures := 0
	for d, err := range r.Deltas(t.Context(), Query{}) {
		if err != nil {
			require.ErrorAs(t, err, &missing)
			failures++
			continue
		}
		seqs = append(seqs, d.Seq)
	}
	require.Equal(t, []int64{1, 2, 3, 4, 5, 8, 9, 10, 11}, seqs, "the other days are read")
	require.Equal(t, 1, failures)
	require.Equal(t, "2026-03-12", missing.Day.Format(time.DateOnly))

	_, err := r.Resolve(t.Context(), AtSeq(6), Scope{})
	require.ErrorAs(t, err, &missing)
	p := resolved(t, r, AtSeq(5), Scope{})
	got, _ := rebuilt(t, r, p, Scope{}, RebuildOptions{})
	require.Equal(t, b.liveAt(bySeq(5)), got, "an earlier instant does not need it")
	p = resolved(t, r, AtSeq(11), Scope{})
	got, _ = rebuilt(t, r, p, Scope{Name: "x"}, RebuildOptions{})
	require.Equal(t, map[string]string{"1 a/x": string(b.pages[10].thing.Content)}, got, "an object that changed later does not need it")
	_, err = r.Rebuild(t.Context(), p, Scope{}, RebuildOptions{}, func(Object) error { return nil })
	require.ErrorAs(t, err, &missing, "an object that may have changed that day needs it")
}

func TestADamagedRowIsReportedAndTheOthersAreRead(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`), b.set(0, "a", "y", `1`), b.set(0, "a", "x", `2`), b.set(0, "a", "x", `3`), b.set(0, "a", "y", `2`))
	c := b.checkpointer(t, checkpoint.Options{})
	b.DB.Exec(t, `UPDATE kuberewind.deltas_data SET patch = jsonb_set(patch, '{0,value}', '9') WHERE seq = 3`)
	r := b.record(t)
	var bad []int64
	for v, err := range r.Versions(t.Context(), Query{}) {
		var damaged *DamagedError
		if errors.As(err, &damaged) {
			require.Equal(t, v.Seq, damaged.Seq)
			require.Equal(t, int64(3), damaged.Root)
			require.Nil(t, v.Doc)
			bad = append(bad, v.Seq)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, string(b.pages[v.Seq-1].thing.Content), string(v.Doc))
	}
	require.Equal(t, []int64{3, 4}, bad)

	_, err := c.MakeOne(t.Context())
	require.NoError(t, err, "a damaged object does not prevent a checkpoint")
	for _, o := range []RebuildOptions{{}, {NoCheckpoint: true}} {
		var reported []*DamagedError
		o.Damaged = func(d *DamagedError) { reported = append(reported, d) }
		got, stats := rebuilt(t, r, resolved(t, r, AtSeq(5), Scope{}), Scope{}, o)
		require.Equal(t, map[string]string{"1 a/y": string(b.pages[4].thing.Content)}, got)
		require.Equal(t, int64(1), stats.Damaged)
		require.Len(t, reported, 1)
		require.Equal(t, int64(3), reported[0].Seq)
		require.ErrorIs(t, reported[0], ErrDigest)
		require.ErrorContains(t, reported[0], "seq 3 of things0.example.com a/x is damaged")
	}
	_, err = r.Rebuild(t.Context(), resolved(t, r, AtSeq(5), Scope{}), Scope{}, RebuildOptions{}, func(Object) error { return nil })
	var damaged *DamagedError
	require.ErrorAs(t, err, &damaged)
}

func TestARebuildReadsOneStateWhileARecorderWrites(t *testing.T) {
	b := newBook(t, 2)
	rnd := random(t)
	b.scribble(rnd, 20)
	r := b.record(t)
	seq := int64(len(b.pages))
	want := b.liveAt(bySeq(seq))
	p := resolved(t, r, Now(), Scope{})
	require.Equal(t, seq, p.Seq)
	b.scribble(rnd, 5)
	got, _ := rebuilt(t, r, p, Scope{}, RebuildOptions{})
	require.Equal(t, want, got)
}

func TestAnErrorOfEmitEndsARebuild(t *testing.T) {
	b := newBook(t, 1)
	b.scribble(random(t), 5)
	r := b.record(t)
	full := errors.New("full")
	_, err := r.Rebuild(t.Context(), resolved(t, r, Now(), Scope{}), Scope{}, RebuildOptions{}, func(Object) error { return full })
	require.ErrorIs(t, err, full)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Rebuild(ctx, resolved(t, r, Now(), Scope{}), Scope{}, RebuildOptions{}, func(Object) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
}

func TestConcurrentRebuildsDoNotWaitForEachOther(t *testing.T) {
	b := newBook(t, 1)
	var items []postgres.Item
	for i := range 2 * lastChunk {
		items = append(items, b.set(0, "a", "o"+strconv.Itoa(i), `1`))
	}
	b.commit(items...)
	r := b.record(t)
	p := resolved(t, r, Now(), Scope{})
	var all errgroup.Group
	for range 3 * int(r.Pool().Config().MaxConns) {
		all.Go(func() error {
			_, err := r.Rebuild(t.Context(), p, Scope{}, RebuildOptions{}, func(Object) error { return nil })
			return err
		})
	}
	require.NoError(t, all.Wait())
}

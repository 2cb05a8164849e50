package timeline_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/erasure"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scene/record"
	"github.com/kuberewind/kuberewind/internal/timelinetest"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/timeline/activity"
)

// A slow Set stretches ten minutes to four days, so that bars are minutes and hours wide.
type slow struct{ data.Set }

const slower = 600

func (s slow) at(e data.Event) data.Event {
	for first := range s.Set.First() {
		e.At = first.At.Add(slower * e.At.Sub(first.At))
		break
	}
	return e
}

func (s slow) First() iter.Seq[data.Event] {
	return func(yield func(data.Event) bool) {
		for e := range s.Set.First() {
			if !yield(s.at(e)) {
				return
			}
		}
	}
}

func (s slow) Events() iter.Seq2[data.Event, error] {
	return func(yield func(data.Event, error) bool) {
		for e, err := range s.Set.Events() {
			if !yield(s.at(e), err) {
				return
			}
		}
	}
}

// newSlowScene serves the recording as if it had taken four days.
func newSlowScene(t *testing.T, patience time.Duration) *scene {
	t.Helper()
	set, err := record.Set(t.TempDir())
	require.NoError(t, err)
	db := pgtest.New(t, pgtest.EmptyRecord)
	require.NoError(t, record.SetInto(t.Context(), db.URL(), slow{set}, nil))
	return served(t, db, patience)
}

// counter returns a Counter of a recorder whose login is not the owner. A block has the given number of deltas.
func (s *scene) counter(t *testing.T, block int64) *activity.Counter {
	t.Helper()
	pool, err := postgres.NewCounterPool(t.Context(), s.database.Login(t, migrations.WriterRole), activity.Session)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return activity.NewCounter(pool, s.record.Cluster(), activity.Options{Block: block, Busy: 1})
}

// A comparison sends the same requests again and again.
type comparison struct {
	*scene
	db    *pgx.Conn
	sql   timelinetest.SQL
	asked []timelinetest.Choice
	want  []map[string]int64
	plain []bars // the answers without counts
}

// compare chooses windows, and counts them delta by delta.
func (s *scene) compare(t *testing.T, words timelinetest.Words, n int) *comparison {
	t.Helper()
	c := &comparison{scene: s, db: s.database.Connect(t), sql: timelinetest.Documented(t, "../docs/timeline.md")}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for len(c.asked) < n {
		choice := c.sql.Choose(random, words, 2)
		if words.Label == "" && choice.Values.Has("label") {
			continue
		}
		s.window(choice.Values, random)
		c.asked = append(c.asked, choice)
	}
	c.countPlainly(t)
	return c
}

// countPlainly counts by the documented SQL, and delta by delta. It moves the counts aside meanwhile.
func (c *comparison) countPlainly(t *testing.T) {
	t.Helper()
	exec := func(sql string) { _, err := c.db.Exec(t.Context(), sql); require.NoError(t, err) }
	exec("DROP TABLE IF EXISTS marks, aside; CREATE TEMPORARY TABLE aside AS SELECT * FROM kuberewind.activity; DELETE FROM kuberewind.activity")
	c.sql.Classified(t, c.db)
	c.plain, c.want = nil, nil
	for _, choice := range c.asked {
		var got bars
		c.ask(t, "strip", choice.Values, &got)
		require.Empty(t, got.Next)
		require.True(t, got.Ahead == nil || got.Ahead.Deltas == 0, "nothing is counted ahead")
		want := c.counts(t, c.db, c.sql, choice, &got)
		require.Equal(t, want, got.counted(), choice.Values)
		c.plain, c.want = append(c.plain, got), append(c.want, want)
	}
	exec("INSERT INTO kuberewind.activity SELECT * FROM aside")
}

// equal compares all answers with the first ones. It returns how many deltas were counted ahead.
func (c *comparison) equal(t *testing.T, when string) (ahead int64) {
	t.Helper()
	for i, choice := range c.asked {
		var got bars
		c.ask(t, "strip", choice.Values, &got)
		require.Empty(t, got.Next)
		require.Equal(t, c.want[i], got.counted(), "%s: %v", when, choice.Values)
		require.Equal(t, c.plain[i].Hidden, got.Hidden, "%s: %v", when, choice.Values)
		require.Equal(t, c.plain[i].Before, got.Before, "%s: %v", when, choice.Values)
		require.Equal(t, c.plain[i].FirstSeq, got.FirstSeq, "%s: %v", when, choice.Values)
		require.Equal(t, c.plain[i].LastSeq, got.LastSeq, "%s: %v", when, choice.Values)
		if got.Ahead != nil {
			ahead += got.Ahead.Deltas
		}
		for _, of := range []string{"name", "label", "path", "type"} {
			require.False(t, choice.Values.Has(of) && got.Ahead != nil, "counts do not know the %s", of)
		}
	}
	return ahead
}

// The bars of the scene are seconds wide; those of the slow scene are minutes and hours wide.
func TestAStripIsTheSameWithCountsMadeAhead(t *testing.T) {
	for name, scene := range map[string]func(*testing.T, time.Duration) *scene{"seconds": newScene, "minutes and hours": newSlowScene} {
		t.Run(name, func(t *testing.T) { sameFromCounts(t, scene(t, time.Minute)) })
	}
}

func sameFromCounts(t *testing.T, s *scene) {
	t.Helper()
	c := s.compare(t, timelinetest.OfScene(), 25)
	counter := s.counter(t, 64)
	require.NoError(t, counter.CountDue(t.Context()))
	all := c.equal(t, "with all counts")
	require.Positive(t, all)

	exec := func(sql string) { _, err := c.db.Exec(t.Context(), sql); require.NoError(t, err) }
	exec("DELETE FROM kuberewind.activity WHERE first_seq / 64 % 2 = 0 AND width IN ('hour', 'delta') OR first_seq / 64 % 3 = 0")
	half := c.equal(t, "with half of the counts")
	require.Positive(t, half)
	require.Less(t, half, all)
	require.NoError(t, counter.CountDue(t.Context()))
	require.Equal(t, all, c.equal(t, "with the deleted blocks counted again"))

	exec("UPDATE kuberewind.activity SET classifier = 99, counts = array_fill(7, ARRAY[cardinality(counts)])")
	require.Zero(t, c.equal(t, "with counts of another classifier"))
	require.NoError(t, counter.CountDue(t.Context()))
	require.Equal(t, all, c.equal(t, "after the counter replaced them"))

	exec("UPDATE kuberewind.activity SET counts = counts || 1 WHERE first_seq = 1")
	c.equal(t, "with a row whose arrays differ in length")
	exec("UPDATE kuberewind.activity SET deltas = substr(deltas, 1, length(deltas) - 1) WHERE width = 'delta'")
	c.equal(t, "with sequences that end early")
	require.NoError(t, counter.Rebuild(t.Context()))
	require.Equal(t, all, c.equal(t, "after a rebuild"))
}

// An erasure may change the class of a delta: a Pod is bound if only its node and its condition PodScheduled changed.
func TestCountsUseTheNewClassesAfterAnErasure(t *testing.T) {
	s := newSlowScene(t, time.Minute)
	c := s.compare(t, timelinetest.OfScene(), 20)
	counter := s.counter(t, 64)
	require.NoError(t, counter.CountDue(t.Context()))
	all := c.equal(t, "before the erasure")
	shown := `SELECT count(*) FROM marks WHERE class = 'change'`
	var before, after, rows int64
	require.NoError(t, c.db.QueryRow(t.Context(), shown).Scan(&before))
	report, err := erasure.Erase(t.Context(), s.database.Connect(t), erasure.Options{
		Cluster: s.record.Cluster().Number, Value: []byte("PodScheduled"), Keyed: func(text []byte) []byte { return text }, Reason: "test", Recorder: "test", Version: "test",
	})
	require.NoError(t, err)
	require.Positive(t, report.Deltas)
	require.NoError(t, c.db.QueryRow(t.Context(), "SELECT count(*) FROM kuberewind.activity WHERE day = ANY ($1::text[]::date[])", report.Days).Scan(&rows))
	require.Zero(t, rows)
	s.Handler = served(t, s.database, time.Minute).Handler
	c.countPlainly(t)
	require.NoError(t, c.db.QueryRow(t.Context(), shown).Scan(&after))
	require.Greater(t, after, before)
	require.Less(t, c.equal(t, "after the erasure"), all)
	require.NoError(t, counter.CountDue(t.Context()))
	require.Equal(t, all, c.equal(t, "after the days were counted again"))
}

// busy writes three days. Only patches show which deltas are heartbeats. The record has a pause with recovered deltas.
func busy(t *testing.T) *booktest.Shop {
	b := booktest.NewShop(t)
	b.List()
	random := rand.New(rand.NewPCG(3, 0))
	bodies := []func(int) (string, string){
		func(i int) (string, string) { return "", fmt.Sprintf(`,"status":{"n":%d}`, i) },
		func(i int) (string, string) { return fmt.Sprintf(`"generation":%d,`, i), "" },
		func(i int) (string, string) {
			return fmt.Sprintf(`"annotations":{"control-plane.alpha.kubernetes.io/leader":"%d"},`, i), ""
		},
		func(i int) (string, string) { return "", fmt.Sprintf(`,"spec":{"n":%d}`, i) },
	}
	alive := map[string]bool{}
	one := func(i int) postgres.Item {
		resource := []string{"pods", "configmaps", "leases", "nodes", "things"}[random.IntN(5)]
		name := fmt.Sprint("x", random.IntN(4))
		metadata, fields := bodies[random.IntN(len(bodies))](i)
		kind := delta.Updated
		if !alive[resource+name] {
			kind = delta.Added
		} else if random.IntN(12) == 0 {
			kind = delta.Deleted
		}
		alive[resource+name] = kind != delta.Deleted
		return b.Delta(kind, delta.SourceWatch, resource, name, metadata, fields)
	}
	for i := range 300 {
		if b.Now = b.Now.Add(time.Duration(random.Int64N(int64(12 * time.Minute)))); i == 120 {
			stopped := b.Now
			b.Pause(5 * time.Hour)
			var late []postgres.Item
			for j := range 40 {
				it := one(1000 + j)
				it.Occurred = stopped.Add(time.Duration(j) * 7 * time.Minute)
				late = append(late, it)
			}
			b.Commit(late...)
		}
		b.Commit(one(i))
	}
	b.Now = b.Now.AddDate(0, 0, 1)
	b.Sweep()
	for i := range 30 {
		b.Now = b.Now.Add(time.Minute)
		b.Commit(one(2000 + i))
	}
	return b
}

func TestCountsHoldAcrossPausesAndPrunes(t *testing.T) {
	b := busy(t)
	s := served(t, b.DB, time.Minute)
	words := timelinetest.OfScene()
	words.Resources = []string{"pods", "configmaps", "nodes", "leases.coordination.k8s.io", "things.example.com"}
	words.Label = "" // SQL folds no object from before the horizon.
	c := s.compare(t, words, 30)
	counter := s.counter(t, 25)
	require.NoError(t, counter.CountDue(t.Context()))
	require.Positive(t, c.equal(t, "with counts"))

	var days int
	_, err := c.db.Exec(t.Context(), "SELECT kuberewind.prune_day('2026-03-10', 'test'), kuberewind.prune_rest()")
	require.NoError(t, err)
	require.NoError(t, c.db.QueryRow(t.Context(), "SELECT count(*) FROM kuberewind.activity WHERE day = '2026-03-10'").Scan(&days))
	require.Zero(t, days, "the prune deletes the counts of the day")
	s.Handler = served(t, b.DB, time.Minute).Handler
	c.countPlainly(t)
	ahead := c.equal(t, "after the prune")
	require.Positive(t, ahead)
	require.NoError(t, counter.Rebuild(t.Context()))
	require.Equal(t, ahead, c.equal(t, "counted again after the prune"))
}

// A client that follows the cursor gets each delta once, whatever is counted or dropped meanwhile.
func TestAContinuedStripIsRightWhileTheCounterRuns(t *testing.T) {
	s := newSlowScene(t, time.Minute)
	v := url.Values{"from": {"0"}, "to": {strconv.FormatInt(s.extent.LastAt.UnixMilli()+1, 10)}, "class": {"change", "heartbeat", "status"}}
	var whole bars
	s.ask(t, "strip", v, &whole)
	require.EqualValues(t, 0, whole.Ahead.Deltas)
	require.Equal(t, s.extent.LastSeq, whole.Ahead.Missing)
	require.Empty(t, whole.Ahead.Text, "so few deltas are read quickly")
	hasty := served(t, s.database, time.Nanosecond)
	counter, db := s.counter(t, 64), s.database.Connect(t)
	for _, step := range []string{"count", "drop"} {
		require.NoError(t, counter.Rebuild(t.Context()))
		if step == "count" {
			_, err := db.Exec(t.Context(), "DELETE FROM kuberewind.activity WHERE first_seq > 300")
			require.NoError(t, err)
		}
		all, answers, texts := map[string]int64{}, 0, 0
		for v.Del("cursor"); ; answers++ {
			var part bars
			hasty.ask(t, "strip", v, &part)
			for bar, n := range part.counted() {
				all[bar] += n
			}
			if part.Ahead.Text != "" {
				texts++
				require.NotEmpty(t, part.Next)
			}
			if v.Set("cursor", part.Next); part.Next == "" {
				break
			}
			if step == "count" {
				require.NoError(t, counter.CountDue(t.Context()))
			} else {
				_, err := db.Exec(t.Context(), "DELETE FROM kuberewind.activity")
				require.NoError(t, err)
			}
		}
		v.Del("cursor")
		require.Equal(t, whole.counted(), all, step)
		require.Positive(t, answers)
		require.Positive(t, texts, "a partial answer says why")
	}
}

func TestCountsOfAMissingDayAreNotUsed(t *testing.T) {
	b := busy(t)
	require.NoError(t, served(t, b.DB, time.Minute).counter(t, 25).CountDue(t.Context()))
	lost := booktest.Noon.AddDate(0, 0, 1)
	b.Lose(lost)
	s := served(t, b.DB, time.Minute)
	db := s.database.Connect(t)
	sql := documented(t, db)
	c := timelinetest.Choice{Values: url.Values{"from": {millis(booktest.Noon)}, "to": {millis(b.Now.Add(time.Second))}}, Where: " AND class <> 'heartbeat'"}
	var got bars
	s.ask(t, "strip", c.Values, &got)
	require.Positive(t, got.Ahead.Deltas)
	require.Equal(t, s.counts(t, db, sql, c, &got), got.counted())
	pruned := 0
	for _, l := range got.Incomplete {
		if l.Kind == "pruned" {
			pruned++
		}
	}
	require.Equal(t, 1, pruned)
}

// A Counter that stops at any time continues where it stopped.
func TestAStoppedCounterContinues(t *testing.T) {
	s := newSlowScene(t, time.Minute)
	counter, db := s.counter(t, 32), s.database.Connect(t)
	table := func() (rows []string) {
		found, err := db.Query(t.Context(), "SELECT md5(a::text) FROM kuberewind.activity a ORDER BY day, first_seq, width")
		require.NoError(t, err)
		rows, err = pgx.CollectRows(found, pgx.RowTo[string])
		require.NoError(t, err)
		return rows
	}
	require.NoError(t, counter.CountDue(t.Context()))
	want := table()
	_, err := db.Exec(t.Context(), "DELETE FROM kuberewind.activity")
	require.NoError(t, err)
	for stops := 0; ; stops++ {
		ctx, cancel := context.WithCancel(t.Context())
		stopper := s.counter(t, 32)
		stopped := make(chan error, 1)
		go func() { stopped <- stopper.CountDue(ctx) }()
		require.Eventually(t, func() bool { return len(table()) > 15*stops || len(table()) == len(want) }, 5*time.Minute, time.Millisecond)
		cancel()
		if err := <-stopped; err == nil {
			break
		}
		require.Zero(t, len(table())%5, "a block has all widths, or none")
	}
	require.Equal(t, want, table())
}

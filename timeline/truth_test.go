package timeline_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/timelinetest"
)

// documented returns the documented SQL, and creates the table marks in db.
func documented(t *testing.T, db *pgx.Conn) timelinetest.SQL {
	t.Helper()
	sql := timelinetest.Documented(t, "../docs/timeline.md")
	sql.Classified(t, db)
	return sql
}

// A bars is the strip of an answer.
type bars struct {
	Seq, From, To, StepMS int64
	Classes               []string
	Counts                [][]int64
	FirstSeq, LastSeq     []int64
	Hidden, Before        map[string]int64
	Next                  string
	Incomplete            []struct{ Kind string }
	Ahead                 *struct {
		Deltas, Missing int64
		Text            string
	}
}

// counted returns the bars that are not empty, by class and time.
func (b *bars) counted() map[string]int64 {
	all := map[string]int64{}
	for c, counts := range b.Counts {
		for i, n := range counts {
			if n > 0 {
				all[fmt.Sprint(b.Classes[c], " ", b.From+int64(i)*b.StepMS)] += n
			}
		}
	}
	return all
}

func TestAStripEqualsTheDocumentedSQL(t *testing.T) {
	s := newScene(t, time.Minute)
	db := s.database.Connect(t)
	sql := documented(t, db)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 24 {
		c := sql.Choose(random, timelinetest.OfScene(), 1)
		s.window(c.Values, random)
		var got bars
		s.ask(t, "strip", c.Values, &got)
		require.Empty(t, got.Next)
		require.Equal(t, s.counts(t, db, sql, c, &got), got.counted(), c.Values)
		require.Equal(t, s.before(t, db, sql, c, &got), got.Before, c.Values)
	}
}

// before counts, by the documented SQL, the objects in the first list that are older than the record.
func (s *scene) before(t *testing.T, db *pgx.Conn, sql timelinetest.SQL, c timelinetest.Choice, of *bars) map[string]int64 {
	t.Helper()
	asked, err := strconv.ParseInt(c.Values.Get("from"), 10, 64)
	require.NoError(t, err)
	since := time.UnixMilli(asked).Truncate(time.Duration(of.StepMS) * time.Millisecond).UTC()
	query := sql.With("before", map[string]string{"from": since.Format(time.RFC3339Nano), "begin": time.UnixMilli(of.From).UTC().Format(time.RFC3339Nano)})
	rows, err := db.Query(t.Context(), strings.Replace(query, "GROUP BY", c.Where+"\nGROUP BY", 1))
	require.NoError(t, err, query)
	all := map[string]int64{}
	var name string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error { all[name] = n; return nil })
	require.NoError(t, err, query)
	return all
}

// window adds a random window with a random number of bars.
func (s *scene) window(v url.Values, random *rand.Rand) {
	first, span := s.extent.FirstAt.UnixMilli(), s.extent.LastAt.Sub(s.extent.FirstAt).Milliseconds()
	from := first - 60_000 + random.Int64N(span)
	v.Set("from", strconv.FormatInt(from, 10))
	v.Set("to", strconv.FormatInt(from+1+random.Int64N(span), 10))
	v.Set("bars", strconv.FormatInt(1+random.Int64N(300), 10))
}

func (s *scene) counts(t *testing.T, db *pgx.Conn, sql timelinetest.SQL, c timelinetest.Choice, of *bars) map[string]int64 {
	t.Helper()
	stamp := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }
	query := sql.With("strip", map[string]string{"from": stamp(of.From), "to": stamp(of.To), "step": fmt.Sprintf("%d milliseconds", of.StepMS)})
	query = strings.Replace(query, "GROUP BY", c.Where+"\nGROUP BY", 1)
	rows, err := db.Query(t.Context(), query)
	require.NoError(t, err, query)
	all := map[string]int64{}
	var name string
	var at time.Time
	var n, first, last int64
	_, err = pgx.ForEachRow(rows, []any{&name, &at, &n, &first, &last}, func() error {
		all[fmt.Sprint(name, " ", at.UnixMilli())] += n
		i := (at.UnixMilli() - of.From) / of.StepMS
		require.LessOrEqual(t, of.FirstSeq[i], first)
		require.GreaterOrEqual(t, of.LastSeq[i], last)
		return nil
	})
	require.NoError(t, err, query)
	return all
}

func TestAStripContinuesWhereItStopped(t *testing.T) {
	patient, hasty := newScene(t, time.Minute), newScene(t, time.Nanosecond)
	v := url.Values{"from": {"0"}, "to": {strconv.FormatInt(patient.extent.LastAt.UnixMilli()+1, 10)}, "class": {"change", "heartbeat", "status"}}
	var whole bars
	patient.ask(t, "strip", v, &whole)
	all, before, answers := map[string]int64{}, map[string]int64{}, 0
	for {
		var part bars
		hasty.ask(t, "strip", v, &part)
		answers++
		for bar, n := range part.counted() {
			all[bar] += n
		}
		for class, n := range part.Before {
			before[class] += n
		}
		unread := false
		for _, l := range part.Incomplete {
			unread = unread || l.Kind == "unread"
		}
		require.Equal(t, part.Next != "", unread, "the answer names the uncounted rest")
		if part.Next == "" {
			break
		}
		v.Set("cursor", part.Next)
	}
	require.Greater(t, answers, 1)
	require.Equal(t, whole.counted(), all)
	require.NotEmpty(t, before, "the first list of the scene found objects that are older")
	require.Equal(t, whole.Before, before)
}

func TestTicksEqualTheDocumentedSQL(t *testing.T) {
	s := newScene(t, time.Minute)
	db := s.database.Connect(t)
	sql := documented(t, db)
	random := rand.New(rand.NewPCG(7, 0))
	for range 12 {
		c := sql.Choose(random, timelinetest.OfScene(), 1)
		s.window(c.Values, random)
		c.Values.Del("bars")
		var lanes struct {
			Total int64
			Lanes []struct{ ID, Changes int64 }
			Next  string
			Left  map[string]int64
		}
		c.Values.Set("limit", "500")
		c.Values.Set("group", "none")
		s.ask(t, "lanes", c.Values, &lanes)
		want := s.byLife(t, db, sql, c)
		var ids []string
		counted := 0
		for _, l := range lanes.Lanes {
			ids = append(ids, strconv.FormatInt(l.ID, 10))
			require.Equal(t, want[l.ID], l.Changes, "lane %d of %v", l.ID, c.Values)
			if l.Changes > 0 {
				counted++
			}
		}
		require.Empty(t, lanes.Next)
		for _, n := range lanes.Left {
			counted += int(n)
		}
		if c.Values.Has("namespace") {
			require.GreaterOrEqual(t, counted, len(want), "Left includes Events and Leases that did not change: %v", c.Values)
		} else {
			require.Len(t, want, counted, "each life has a lane, or is counted in Left: %v", c.Values)
		}
		if len(ids) == 0 {
			continue
		}
		c.Values.Del("limit")
		c.Values.Del("group")
		c.Values.Set("lanes", strings.Join(ids, ","))
		c.Values.Set("stepMs", strconv.Itoa(random.IntN(60_000)))
		var ticks struct {
			Lanes []struct {
				ID               int64
				Time, Seq, Count []int64
				Class, Manager   []int
			}
		}
		s.ask(t, "ticks", c.Values, &ticks)
		require.Len(t, ticks.Lanes, len(ids))
		for _, l := range ticks.Lanes {
			require.Len(t, l.Time, len(l.Count))
			require.Len(t, l.Manager, len(l.Class))
			n := int64(0)
			for _, of := range l.Count {
				n += of
			}
			require.Equal(t, want[l.ID], n, "ticks of %d of %v", l.ID, c.Values)
		}
	}
}

func (s *scene) byLife(t *testing.T, db *pgx.Conn, sql timelinetest.SQL, c timelinetest.Choice) map[int64]int64 {
	t.Helper()
	stamp := func(name string) string {
		ms, err := strconv.ParseInt(c.Values.Get(name), 10, 64)
		require.NoError(t, err)
		return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
	}
	query := sql.With("ticks", map[string]string{"from": stamp("from"), "to": stamp("to")})
	query = strings.Replace(query, "GROUP BY", c.Where+"\nGROUP BY", 1)
	rows, err := db.Query(t.Context(), query)
	require.NoError(t, err, query)
	all := map[int64]int64{}
	var id, n, last int64
	_, err = pgx.ForEachRow(rows, []any{&id, &n, &last}, func() error {
		all[id] = n
		return nil
	})
	require.NoError(t, err)
	return all
}

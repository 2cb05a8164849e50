package timeline_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// documented are the pieces of SQL of docs/timeline.md, by the comment that each begins with.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/timeline.md")
	require.NoError(t, err)
	pieces := map[string]string{}
	for block := range strings.SplitSeq(string(text), "```sql\n") {
		name, sql, _ := strings.Cut(block, "\n")
		if name, ok := strings.CutPrefix(strings.TrimSpace(name), "-- "); ok {
			pieces[name], _, _ = strings.Cut(sql, "```")
		}
	}
	return pieces
}

// with puts values in the place of psql's variables.
func with(sql string, values map[string]string) string {
	for name, value := range values {
		sql = strings.ReplaceAll(sql, ":'"+name+"'", "'"+strings.ReplaceAll(value, "'", "''")+"'")
	}
	return sql
}

// classified makes the table marks out of the documented query: each comparison would else compute it again.
func classified(t *testing.T, db *pgx.Conn) map[string]string {
	t.Helper()
	sql := documented(t)
	_, err := db.Exec(t.Context(), "CREATE TEMPORARY TABLE marks AS "+sql["marks"])
	require.NoError(t, err)
	return sql
}

// A choice is a random filter: as parameters, and as SQL.
type choice struct {
	values url.Values
	where  string
}

// choose makes a random filter of what the record holds.
func choose(random *rand.Rand, sql map[string]string) choice {
	c := choice{values: url.Values{}, where: " AND class <> 'heartbeat'"}
	add := func(name, value string) {
		c.values.Add(name, value)
		c.where += " AND " + with(sql[name], map[string]string{name: strings.ReplaceAll(value, "*", "%")})
	}
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	switch random.IntN(9) {
	case 0:
	case 1:
		add("namespace", pick("shop", "kube-system", "default", "legacy", "nowhere"))
	case 2:
		add("resource", pick("pods", "deployments.apps", "nodes", "configmaps", "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io"))
	case 3:
		add("name", pick("web", "web-*", "*-0*", "node-001", "*"))
	case 4:
		add("manager", pick("kubectl-set", "kube-controller-manager", "kubelet", "Helm", "nobody"))
	case 5:
		add("type", pick("Added", "Updated", "Deleted", "Sync"))
	case 6:
		c.where = ""
		add("class", pick("change", "added", "deleted", "status", "event", "sync", "heartbeat"))
	case 7:
		add("path", pick("/spec/replicas", "/spec/template", "/status", "/metadata/labels/app", "/data/color", "/spec"))
	case 8:
		// The SQL folds an object for each delta: of few resources, that is quick.
		add("namespace", "shop")
		add("resource", pick("deployments.apps", "services", "replicasets.apps"))
		c.values.Add("label", "app=web")
		c.where += " AND " + with(sql["label"], map[string]string{"key": "app", "value": "web"})
	}
	return c
}

// A bars is a strip as it is answered.
type bars struct {
	Seq, From, To, StepMS int64
	Classes               []string
	Counts                [][]int64
	FirstSeq, LastSeq     []int64
	Hidden                map[string]int64
	Next                  string
	Incomplete            []struct{ Kind string }
}

// counted gives the bars that are not empty, as text.
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

func TestAStripCountsAsTheDocumentedSQLDoes(t *testing.T) {
	s := newScene(t, time.Minute)
	db := s.database.Connect(t)
	sql := classified(t, db)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 24 {
		c := choose(random, sql)
		s.window(c.values, random)
		var got bars
		s.ask(t, "strip", c.values, &got)
		require.Empty(t, got.Next)
		require.Equal(t, s.counts(t, db, sql, c, &got), got.counted(), c.values)
	}
}

// window adds a random window, and how many bars it has.
func (s *scene) window(v url.Values, random *rand.Rand) {
	first, span := s.extent.FirstAt.UnixMilli(), s.extent.LastAt.Sub(s.extent.FirstAt).Milliseconds()
	from := first - 60_000 + random.Int64N(span)
	v.Set("from", strconv.FormatInt(from, 10))
	v.Set("to", strconv.FormatInt(from+1+random.Int64N(span), 10))
	v.Set("bars", strconv.FormatInt(1+random.Int64N(300), 10))
}

func (s *scene) counts(t *testing.T, db *pgx.Conn, sql map[string]string, c choice, of *bars) map[string]int64 {
	t.Helper()
	stamp := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }
	query := with(sql["strip"], map[string]string{"from": stamp(of.From), "to": stamp(of.To), "step": fmt.Sprintf("%d milliseconds", of.StepMS)})
	query = strings.Replace(query, "GROUP BY", c.where+"\nGROUP BY", 1)
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

func TestAStripIsCountedOnWhereItStopped(t *testing.T) {
	patient, hasty := newScene(t, time.Minute), newScene(t, time.Nanosecond)
	v := url.Values{"from": {"0"}, "to": {strconv.FormatInt(patient.extent.LastAt.UnixMilli()+1, 10)}, "class": {"change", "heartbeat", "status"}}
	var whole bars
	patient.ask(t, "strip", v, &whole)
	all, answers := map[string]int64{}, 0
	for {
		var part bars
		hasty.ask(t, "strip", v, &part)
		answers++
		for bar, n := range part.counted() {
			all[bar] += n
		}
		unread := false
		for _, l := range part.Incomplete {
			unread = unread || l.Kind == "unread"
		}
		require.Equal(t, part.Next != "", unread, "what is not counted is a stretch of its own")
		if part.Next == "" {
			break
		}
		v.Set("cursor", part.Next)
	}
	require.Greater(t, answers, 1)
	require.Equal(t, whole.counted(), all)
}

func TestTicksCountAsTheDocumentedSQLDoes(t *testing.T) {
	s := newScene(t, time.Minute)
	db := s.database.Connect(t)
	sql := classified(t, db)
	random := rand.New(rand.NewPCG(7, 0))
	for range 12 {
		c := choose(random, sql)
		s.window(c.values, random)
		c.values.Del("bars")
		var lanes struct {
			Total int64
			Lanes []struct{ ID, Changes int64 }
			Next  string
			Left  map[string]int64
		}
		c.values.Set("limit", "500")
		c.values.Set("group", "none")
		s.ask(t, "lanes", c.values, &lanes)
		want := s.byLife(t, db, sql, c)
		var ids []string
		counted := 0
		for _, l := range lanes.Lanes {
			ids = append(ids, strconv.FormatInt(l.ID, 10))
			require.Equal(t, want[l.ID], l.Changes, "lane %d of %v", l.ID, c.values)
			if l.Changes > 0 {
				counted++
			}
		}
		require.Empty(t, lanes.Next)
		for _, n := range lanes.Left {
			counted += int(n)
		}
		if c.values.Has("namespace") {
			require.GreaterOrEqual(t, counted, len(want), "Events and Leases that did not change are left, too: %v", c.values)
		} else {
			require.Len(t, want, counted, "each life has a lane, or is left: %v", c.values)
		}
		if len(ids) == 0 {
			continue
		}
		c.values.Del("limit")
		c.values.Del("group")
		c.values.Set("lanes", strings.Join(ids, ","))
		c.values.Set("stepMs", strconv.Itoa(random.IntN(60_000)))
		var ticks struct {
			Lanes []struct {
				ID               int64
				Time, Seq, Count []int64
				Class, Manager   []int
			}
		}
		s.ask(t, "ticks", c.values, &ticks)
		require.Len(t, ticks.Lanes, len(ids))
		for _, l := range ticks.Lanes {
			require.Len(t, l.Time, len(l.Count))
			require.Len(t, l.Manager, len(l.Class))
			n := int64(0)
			for _, of := range l.Count {
				n += of
			}
			require.Equal(t, want[l.ID], n, "ticks of %d of %v", l.ID, c.values)
		}
	}
}

func (s *scene) byLife(t *testing.T, db *pgx.Conn, sql map[string]string, c choice) map[int64]int64 {
	t.Helper()
	stamp := func(name string) string {
		ms, err := strconv.ParseInt(c.values.Get(name), 10, 64)
		require.NoError(t, err)
		return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
	}
	query := with(sql["ticks"], map[string]string{"from": stamp("from"), "to": stamp("to")})
	query = strings.Replace(query, "GROUP BY", c.where+"\nGROUP BY", 1)
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

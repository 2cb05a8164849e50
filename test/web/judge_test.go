package web_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/timelinetest"
)

// A judged is a record under the page, and what SQL says of it.
type judged struct {
	uid         string
	url         string
	db          *pgx.Conn
	sql         timelinetest.SQL
	words       timelinetest.Words
	first, last int64     // the milliseconds that the record spans, both included
	unknown     []unknown // what is not known
}

// An unknown is a stretch of which something is not known, in milliseconds.
type unknown struct {
	kind, stream string
	from, to     int64 // never is no end
}

const never = math.MaxInt64

// newJudged reads what SQL says of a record. lost are days whose partitions are gone: no view shows these.
func newJudged(t *testing.T, db *pgtest.Database, uid string, words timelinetest.Words, lost ...time.Time) *judged {
	t.Helper()
	j := &judged{uid: uid, url: db.URL(), db: db.Connect(t), sql: timelinetest.Documented(t, "../../docs/timeline.md"), words: words}
	j.sql.Classified(t, j.db)
	for i, name := range words.Names {
		if !strings.Contains(name, "*") {
			j.words.Names[i] = "*" + name + "*" // People type a part of a name; the page adds the stars.
		}
	}
	require.NoError(t, j.db.QueryRow(t.Context(), `
		SELECT floor(extract(epoch FROM min(observed_at)) * 1000), floor(extract(epoch FROM max(observed_at)) * 1000) FROM kuberewind.deltas`).Scan(&j.first, &j.last))
	rows, err := j.db.Query(t.Context(), j.sql["incomplete"])
	require.NoError(t, err)
	var kind, resource string
	var from, to *time.Time
	_, err = pgx.ForEachRow(rows, []any{&kind, &resource, &from, &to}, func() error {
		u := unknown{kind: kind, stream: resource, to: never}
		if from != nil {
			u.from = from.UnixMilli()
		}
		if to != nil {
			u.to = to.UnixMilli()
		}
		j.unknown = append(j.unknown, u)
		return nil
	})
	require.NoError(t, err)
	for _, day := range lost {
		var first, last time.Time
		require.NoError(t, j.db.QueryRow(t.Context(), `SELECT first_at, last_at FROM kuberewind.record_days WHERE day = $1`, day).Scan(&first, &last))
		j.unknown = append(j.unknown, unknown{kind: "pruned", from: first.UnixMilli(), to: last.UnixMilli() + 1})
	}
	return j
}

// A view is what was asked of the page.
type view struct {
	Cluster  string   `json:"cluster"`
	Fragment string   `json:"fragment"`
	Keys     []string `json:"keys"`   // pressed after it
	Scroll   float64  `json:"scroll"` // of the lanes, from 0 to 1

	choice timelinetest.Choice
	group  string
}

// inURL are the names of filters in the URL of the page.
var inURL = map[string]string{
	"namespace": "in", "resource": "of", "name": "find", "class": "class", "label": "label", "manager": "manager", "path": "path", "type": "type",
}

// view makes a random window, filter and zoom.
func (j *judged) view(random *rand.Rand) *view {
	v := &view{Cluster: j.uid, choice: j.sql.Choose(random, j.words, 2), group: []string{"owner", "none", "node"}[random.IntN(3)], Scroll: random.Float64(), Keys: []string{}}
	from, to := j.window(random)
	q := url.Values{
		"cluster": {j.uid}, "panel": {"changes"}, "group": {v.group}, "sort": {[]string{"changes", "name"}[random.IntN(2)]},
		"from": {strconv.FormatInt(from, 10)}, "to": {strconv.FormatInt(to, 10)},
	}
	for name, values := range v.choice.Values {
		q[inURL[name]] = values
	}
	v.Fragment = q.Encode()
	for random.IntN(3) == 0 {
		v.Keys = append(v.Keys, []string{"+", "-", "[", "]", "0"}[random.IntN(5)])
	}
	return v
}

// window is one of any width, anywhere, or at an edge of something that is not known.
func (j *judged) window(random *rand.Rand) (from, to int64) {
	span := j.last - j.first
	width := int64(math.Exp(random.Float64()*math.Log(float64(span)/1000)) * 1000)
	middle := j.first + random.Int64N(span)
	if random.IntN(2) == 0 {
		u := j.unknown[random.IntN(len(j.unknown))]
		switch ends := u.to != never; {
		case ends && (u.from == 0 || random.IntN(2) == 0):
			middle = u.to
		case u.from != 0:
			middle = u.from
		}
	}
	from = max(0, middle-random.Int64N(width+1))
	return from, from + max(1, width)
}

// A bar is one that was drawn.
type bar struct {
	From   int64            `json:"from"`
	To     int64            `json:"to"`
	Counts map[string]int64 `json:"counts"`
}

// A shown is what the page drew: its draw list, and the text of its rows.
type shown struct {
	From    int64 `json:"from"` // the window of the lanes
	To      int64 `json:"to"`
	Strip   []bar `json:"strip"`
	Density []bar `json:"density"`
	Marks   []struct {
		Lane  int64  `json:"lane"`
		Time  int64  `json:"time"`
		Seq   int64  `json:"seq"`
		Count int64  `json:"count"`
		Class string `json:"class"`
	} `json:"marks"`
	Hatched []struct {
		View    string   `json:"view"`
		Lane    int64    `json:"lane"`
		From    int64    `json:"from"`
		To      *int64   `json:"to"`
		Kind    string   `json:"kind"`
		Streams []string `json:"streams"`
	} `json:"hatched"`
	Merged int64 `json:"merged"` // milliseconds
	Rows   []struct {
		Lane    int64 `json:"lane"`
		Changes int64 `json:"changes"`
	} `json:"rows"`
	Total   int64            `json:"total"` // of the treegrid
	Left    map[string]int64 `json:"left"`
	Hidden  *int64           `json:"hidden"` // heartbeats
	Changes int64            `json:"changes"`
}

// judge compares what was drawn with SQL, and gives what differs.
func (j *judged) judge(ctx context.Context, v *view, s *shown) (wrong []string, err error) {
	err = pgx.BeginFunc(ctx, j.db, func(tx pgx.Tx) error {
		c := &comparing{judged: j, tx: tx, view: v, shown: s}
		err := c.all(ctx)
		wrong = c.wrong
		return err
	})
	return wrong, err
}

// A comparing is one comparison.
type comparing struct {
	*judged
	tx    pgx.Tx
	view  *view
	shown *shown
	wrong []string
}

func (c *comparing) differ(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

func (c *comparing) all(ctx context.Context) error {
	for table, where := range map[string]string{"chosen": c.view.choice.Where, "hidden": c.view.choice.Hidden} {
		if _, err := c.tx.Exec(ctx, "CREATE TEMPORARY TABLE "+table+" ON COMMIT DROP AS SELECT * FROM marks d WHERE true"+where); err != nil {
			return err
		}
	}
	for _, each := range []func(context.Context) error{c.notKnown, c.strip, c.density, c.rows, c.marks} {
		if err := each(ctx); err != nil {
			return err
		}
	}
	return nil
}

// piece runs a documented piece of SQL on the deltas that the filter chose.
func (c *comparing) piece(ctx context.Context, name, table string, from, to, step int64) (pgx.Rows, error) {
	stamp := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }
	query := c.sql.With(name, map[string]string{"from": stamp(from), "to": stamp(to), "step": fmt.Sprintf("%d milliseconds", step)})
	return c.tx.Query(ctx, strings.Replace(query, "FROM marks d", "FROM "+table+" d", 1))
}

func (c *comparing) strip(ctx context.Context) error {
	_, err := c.bars(ctx, "strip", c.shown.Strip, c.first, c.last+1)
	return err
}

func (c *comparing) density(ctx context.Context) error {
	step, err := c.bars(ctx, "density", c.shown.Density, c.shown.From, c.shown.To)
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, b := range c.shown.Density {
		for _, n := range b.Counts {
			sum += n
		}
	}
	if sum != c.shown.Changes && c.whole(step) {
		c.differ("%d changes in the window are said, and the bars have %d", c.shown.Changes, sum)
	}
	if c.shown.Hidden == nil || step == 0 {
		return nil
	}
	from, to, ok := c.clamped(c.shown.From, c.shown.To, step)
	hidden, err := c.count(ctx, "hidden", from, to)
	if want := hidden; ok && want != *c.shown.Hidden {
		c.differ("%d heartbeats are said to be hidden, SQL has %d", *c.shown.Hidden, want)
	}
	return err
}

// whole reports whether the window has whole bars: only then all that were counted are seen.
func (c *comparing) whole(step int64) bool {
	return step > 0 && c.shown.From%step == 0 && c.shown.To%step == 0
}

// clamped is what of a window lies in the record, in whole bars.
func (c *comparing) clamped(from, to, step int64) (first, end int64, ok bool) {
	if to <= c.first || from > c.last {
		return 0, 0, false
	}
	from, to = floor(max(from, c.first), step), min(to, c.last+1)
	return from, floor(to+step-1, step), true
}

// century is where Go and date_bin begin to count.
var century = time.Time{}.UnixMilli()

// floor goes down to a whole multiple of a step since the year 1.
func floor(ms, step int64) int64 { return ms - (ms-century)%step }

func (c *comparing) count(ctx context.Context, table string, from, to int64) (n int64, err error) {
	rows, err := c.piece(ctx, "ticks", table, from, to, 0)
	if err != nil {
		return 0, err
	}
	var id, some, last int64
	_, err = pgx.ForEachRow(rows, []any{&id, &some, &last}, func() error { n += some; return nil })
	return n, err
}

// bars compares bars, and gives their width: 0 if none was drawn.
func (c *comparing) bars(ctx context.Context, name string, drawn []bar, from, to int64) (step int64, err error) {
	got := map[string]int64{}
	for _, b := range drawn {
		if step = b.To - b.From; step != drawn[0].To-drawn[0].From || floor(b.From, step) != b.From {
			c.differ("%s: the bar at %d is not as wide as others, or not at a multiple of its width", name, b.From)
		}
		for class, n := range b.Counts {
			if n > 0 {
				got[fmt.Sprint(class, " ", b.From)] += n
			}
		}
	}
	width := cmp.Or(step, 1)
	first, end, ok := c.clamped(from, to, width)
	if !ok {
		if len(got) > 0 {
			c.differ("%s: bars outside of the record: %v", name, got)
		}
		return step, nil
	}
	rows, err := c.piece(ctx, "strip", "chosen", first, end, width)
	if err != nil {
		return step, err
	}
	want := map[string]int64{}
	var class string
	var at time.Time
	var n, low, high int64
	_, err = pgx.ForEachRow(rows, []any{&class, &at, &n, &low, &high}, func() error {
		if at.UnixMilli()+width >= from && at.UnixMilli() <= to {
			want[fmt.Sprint(class, " ", at.UnixMilli())] += n
		}
		return nil
	})
	if !maps.Equal(want, got) {
		c.differ("%s: bars of %d ms are %v, SQL has %v", name, width, got, want)
	}
	return step, err
}

// rows compares the number of each row, and that each life that changed has a row or is counted.
func (c *comparing) rows(ctx context.Context) error {
	counts, err := c.lives(ctx, c.shown.From, c.shown.To)
	if err != nil {
		return err
	}
	if c.shown.To <= c.first {
		counts = nil // A list dates what it found before the record began. A window that ends by then has no counts.
	}
	for _, row := range c.shown.Rows {
		if got, want := row.Changes, counts[row.Lane].count; got != want {
			c.differ("lane %d: %d changes, SQL has %d", row.Lane, got, want)
		}
	}
	lanes := c.shown.Total
	for _, n := range c.shown.Left {
		lanes += n
	}
	quiet := c.view.choice.Values.Has("namespace") || c.view.choice.Values.Has("resource") || c.view.choice.Values.Has("name")
	if n := int64(len(counts)); lanes < n || lanes > n && c.view.group == "none" && !quiet {
		c.differ("%d lives have lanes or are counted (%v), and %d changed by SQL", lanes, c.shown.Left, n)
	}
	return nil
}

// A life is how much of one counts, and the last of it.
type life struct{ count, last int64 }

func (c *comparing) lives(ctx context.Context, from, to int64) (map[int64]life, error) {
	rows, err := c.piece(ctx, "ticks", "chosen", from, to, 0)
	if err != nil {
		return nil, err
	}
	all := map[int64]life{}
	var id, n, last int64
	_, err = pgx.ForEachRow(rows, []any{&id, &n, &last}, func() error { all[id] = life{n, last}; return nil })
	return all, err
}

// marks compares each mark, and all marks of a lane in the window. A mark counts one step; those at the edges reach beyond the window.
func (c *comparing) marks(ctx context.Context) error {
	if c.shown.Merged == 0 {
		if len(c.shown.Rows) > 0 {
			c.differ("%d rows, and no ticks", len(c.shown.Rows))
		}
		return nil
	}
	step, steps, sums := c.shown.Merged, map[int64]map[int64]life{}, map[int64]int64{}
	from, to := (c.shown.From+step-1)/step*step, c.shown.To/step*step
	for _, m := range c.shown.Marks {
		at := m.Time / step * step
		if steps[at] == nil {
			var err error
			if steps[at], err = c.lives(ctx, at, at+step); err != nil {
				return err
			}
		}
		if want := steps[at][m.Lane]; want.count != m.Count || want.last != m.Seq {
			c.differ("lane %d: a mark of %d changes up to seq %d at %d, SQL has %v in %d ms", m.Lane, m.Count, m.Seq, m.Time, want, step)
		}
		if at >= from && at < to {
			sums[m.Lane] += m.Count
		}
	}
	if from >= to {
		return nil
	}
	counts, err := c.lives(ctx, from, to)
	for _, row := range c.shown.Rows {
		if got, want := sums[row.Lane], counts[row.Lane].count; got != want {
			c.differ("lane %d: its marks count %d in the whole steps of %d ms from %d to %d, SQL has %d", row.Lane, got, step, from, to, want)
		}
	}
	return err
}

// notKnown compares what is drawn as not known. The lack of the strip and of the bars is that of the filter's resources, the
// lack of a lane that of its resource.
func (c *comparing) notKnown(ctx context.Context) error {
	got, want := map[string][]string{}, map[string][]string{}
	for _, h := range c.shown.Hatched {
		view, u := h.View, unknown{kind: h.Kind, from: h.From, to: never}
		if view == "lanes" {
			view = laneView(h.Lane)
		}
		if h.To != nil {
			u.to = *h.To
		}
		for _, u.stream = range append(h.Streams, "")[:max(1, len(h.Streams))] {
			got[view] = append(got[view], u.within(c.windowOf(view)))
		}
	}
	of, err := c.resources(ctx)
	if err != nil {
		return err
	}
	add := func(view string, u unknown) {
		if from, to := c.windowOf(view); u.from < to && u.to > from {
			want[view] = append(want[view], u.within(from, to))
		}
	}
	asked := c.view.choice.Values["resource"]
	for _, u := range c.unknown {
		if u.kind == "before" && u.stream == "" {
			continue // The record begins there: nothing is drawn before it.
		}
		if len(asked) == 0 || u.stream == "" || slices.Contains(asked, u.stream) {
			add("strip", u)
			add("density", u)
		}
		for _, row := range c.shown.Rows {
			if u.stream == "" || u.stream == of[row.Lane] {
				add(laneView(row.Lane), u)
			}
		}
	}
	for view := range want {
		got[view] = append(got[view], []string{}...) // A view in which nothing is drawn counts, too.
	}
	for view := range got {
		slices.Sort(got[view])
		slices.Sort(want[view])
		if !slices.Equal(got[view], want[view]) {
			c.differ("not known in the %s: %v is drawn, SQL has %v", view, got[view], want[view])
		}
	}
	return nil
}

func laneView(id int64) string { return fmt.Sprint("lane ", id) }

// windowOf is the time that a view shows.
func (c *comparing) windowOf(view string) (from, to int64) {
	if view == "strip" {
		return c.first, c.last + 1
	}
	return c.shown.From, c.shown.To
}

// within is the part of a stretch that a window shows, as text.
func (u unknown) within(from, to int64) string {
	return fmt.Sprintf("%s %s %d-%d", u.kind, u.stream, max(u.from, from), min(u.to, to))
}

// resources gives the resource of each lane that is shown.
func (c *comparing) resources(ctx context.Context) (map[int64]string, error) {
	ids := make([]int64, 0, len(c.shown.Rows))
	for _, row := range c.shown.Rows {
		ids = append(ids, row.Lane)
	}
	rows, err := c.tx.Query(ctx, `SELECT object_id, concat_ws('.', resource, nullif(api_group, '')) FROM kuberewind.objects WHERE object_id = ANY ($1)`, ids)
	if err != nil {
		return nil, err
	}
	of := map[int64]string{}
	var id int64
	var resource string
	_, err = pgx.ForEachRow(rows, []any{&id, &resource}, func() error { of[id] = resource; return nil })
	return of, err
}

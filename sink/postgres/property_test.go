package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// An event is one change in a server's history.
type event struct {
	kind delta.Type
	rv   int
	o    *object
}

// A model is one resource of a server: its history, and its living objects.
type model struct {
	t         testing.TB
	bookmarks bool
	rv        *int // shared by the resources, as with one etcd
	log       []event
	live      map[string]*object
	compacted int // watches from before it are refused
}

// change makes one random change, or several deletes of one resource version.
func (m *model) change(rt *rapid.T) {
	*m.rv++
	key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "name")
	o := m.live[key]
	switch action := rapid.IntRange(0, 9).Draw(rt, "action"); {
	case o == nil:
		m.add(delta.Added, m.version(rt, key, newUID()))
	case action < 5:
		m.add(delta.Updated, m.version(rt, key, string(o.uid)))
	case action < 7:
		m.add(delta.Deleted, m.version(rt, key, string(o.uid)))
	default:
		for _, key := range slices.Sorted(maps.Keys(m.live)) {
			m.add(delta.Deleted, m.version(rt, key, string(m.live[key].uid)))
		}
	}
}

func (m *model) version(rt *rapid.T, key, uid string) *object {
	spec := rapid.SampledFrom([]string{
		`{}`, `{"a":1}`, `{"a":2}`, `{"a":[1,2,3],"b":{"c":null}}`, `{"a":[1,3],"b":{"c":"x"}}`, `{"a":"\u0000"}`, `{"a":"\ud800"}`,
		`{"n":9007199254740993}`, `{"n":1e999999}`, `"` + noise(300) + `"`, "{\"x\":\"\xff\"}",
	}).Draw(rt, "spec")
	return made(m.t, "ns", key, uid, strconv.Itoa(*m.rv), spec)
}

func (m *model) add(kind delta.Type, o *object) {
	m.log = append(m.log, event{kind: kind, rv: *m.rv, o: o})
	if kind == delta.Deleted {
		delete(m.live, o.name)
		return
	}
	m.live[o.name] = o
}

// A follower stands for the reflector and the queue of one stream.
type follower struct {
	model *model
	st    *Stream
	seen  int // resource version up to which the watch has sent everything
	since int // resource version of the last list or resumption: no watch begins before it
}

// start resumes the watch, or lists.
func (f *follower) start(st *Stream) []Item {
	f.st = st
	if position, err := strconv.Atoi(st.Position()); err == nil && position >= f.model.compacted {
		f.seen, f.since = position, position
		return nil
	}
	return f.list()
}

func (f *follower) list() []Item {
	cause, source := delta.CauseExpired, delta.SourceRelist
	if f.st.state().at.Complete == "" {
		cause, source = delta.CauseFirstList, delta.SourceList
	}
	rv := strconv.Itoa(*f.model.rv)
	end := replacedBy(f.st, cause, rv)
	var items []Item
	for _, key := range slices.Sorted(slices.Values(f.st.Known().ListKeys())) {
		value, _, _ := f.st.Known().GetByKey(key)
		known := value.(KnownObject)
		if o := f.model.live[known.name]; o == nil || o.uid != known.GetUID() {
			items = append(items, Item{Stream: f.st.ID(), Kind: Delta, Type: delta.Deleted, Source: delta.SourceInferred, Key: key, UID: known.GetUID(), RV: rv})
			end.Marker.Vanished++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.model.live)) {
		o := f.model.live[name]
		value, exists, _ := f.st.Known().GetByKey(joinKey("ns", name))
		if exists && value.(KnownObject).GetUID() == o.uid && value.(KnownObject).Digest() == patch.Digest(o.doc) {
			end.Marker.Unchanged++
			continue
		}
		items = append(items, listed(f.st, source, o))
		end.Marker.Changed++
	}
	f.seen, f.since = *f.model.rv, *f.model.rv
	return append(items, end)
}

// watch returns some of the next events, or repeats some that it returned before.
func (f *follower) watch(rt *rapid.T) []Item {
	from := f.seen
	if rapid.IntRange(0, 5).Draw(rt, "again") == 0 {
		from = max(from-rapid.IntRange(1, 6).Draw(rt, "overlap"), f.since)
	}
	n := rapid.IntRange(1, 12).Draw(rt, "events")
	var items []Item
	for _, e := range f.model.log {
		if e.rv > from && (e.rv <= f.seen || n > 0) {
			items = append(items, watched(f.st, e.kind, e.o))
			if e.rv > f.seen {
				n--
			}
		}
	}
	if len(items) > 0 {
		f.seen = max(f.seen, f.lastWhole(items))
	}
	if n > 0 && f.model.bookmarks && rapid.Bool().Draw(rt, "bookmark") {
		f.seen = *f.model.rv
		items = append(items, bookmark(f.st, strconv.Itoa(f.seen)))
	}
	return items
}

// lastWhole returns the last resource version of which all events were sent: several deletes may share one.
func (f *follower) lastWhole(items []Item) int {
	last, _ := strconv.Atoi(items[len(items)-1].Position)
	given, all := 0, 0
	for _, it := range items {
		if it.Position == strconv.Itoa(last) {
			given++
		}
	}
	for _, e := range f.model.log {
		if e.rv == last {
			all++
		}
	}
	if given < all {
		return last - 1
	}
	return last
}

// TestRandomHistoriesAreRecordedExactly checks the promise. In the periods that the record calls covered, it holds
// every version that was served, once, in order, and folding reproduces it. Every other period is a gap.
func TestRandomHistoriesAreRecordedExactly(t *testing.T) {
	db := newDatabase(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := record(t, db)
		defer func() { r.sink.Close() }()
		rv := 10
		models := make([]*model, rapid.IntRange(1, 3).Draw(rt, "streams"))
		followers := make([]*follower, len(models))
		for i := range models {
			models[i] = &model{t: t, rv: &rv, bookmarks: rapid.Bool().Draw(rt, "bookmarks"), live: make(map[string]*object)}
			followers[i] = &follower{model: models[i]}
		}
		run := &run{recording: r, followers: followers}
		run.restart(rt)
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			run.step(rt)
		}
		run.drain(rt)
		for _, f := range followers {
			r.compare(rt, f)
		}
		report := r.verify()
		require.True(rt, report.Anchored)
	})
}

// A run drives the followers of one cluster.
type run struct {
	*recording
	followers []*follower
	queue     []Item
	encoded   *Batch // not yet committed: the encoder may be one batch ahead
}

func (r *run) step(rt *rapid.T) {
	f := r.followers[rapid.IntRange(0, len(r.followers)-1).Draw(rt, "stream")]
	switch rapid.IntRange(0, 11).Draw(rt, "step") {
	case 0, 1, 2, 3:
		for range rapid.IntRange(1, 8).Draw(rt, "changes") {
			f.model.change(rt)
		}
	case 4, 5, 6:
		r.push(f.watch(rt))
	case 7, 8:
		r.flush(rt, false)
	case 9:
		r.now = r.now.Add(time.Duration(rapid.IntRange(0, 10).Draw(rt, "hours")) * time.Hour)
	case 10:
		// The queue compares a list with Known only when no entry waits.
		r.flush(rt, true)
		f.model.compacted = *f.model.rv
		r.push(f.list())
	case 11:
		r.restart(rt)
	}
}

func (r *run) push(items []Item) {
	for i := range items {
		items[i].Observed, items[i].Version = r.now, "v1"
	}
	r.queue = append(r.queue, items...)
}

// flush encodes some or all of the waiting items and commits the previous batch. It may commit the new batch, too.
func (r *run) flush(rt *rapid.T, all bool) {
	n := len(r.queue)
	if !all {
		n = rapid.IntRange(0, n).Draw(rt, "batch")
	}
	b, err := r.sink.Encode(r.queue[:n])
	require.NoError(rt, err)
	r.queue = r.queue[n:]
	r.finish(rt)
	r.encoded = b
	if all || rapid.Bool().Draw(rt, "commit at once") {
		r.finish(rt)
	}
}

func (r *run) finish(rt *rapid.T) {
	if r.encoded != nil {
		require.NoError(rt, r.sink.Commit(context.Background(), r.encoded))
		r.encoded = nil
	}
}

// restart is a crash: it loses the waiting items, and the batch that is encoded and not committed.
func (r *run) restart(rt *rapid.T) {
	r.queue, r.encoded = nil, nil
	r.reopen()
	for i, f := range r.followers {
		st := r.stream(StreamSpec{Group: "example.com", Resource: fmt.Sprint("things", i), Kind: "Thing", Namespaced: true})
		r.push(f.start(st))
		r.flush(rt, true)
	}
}

func (r *run) drain(rt *rapid.T) {
	r.flush(rt, true)
	for _, f := range r.followers {
		f.seen = max(f.seen, f.model.compacted)
		for {
			before := f.seen
			items := f.watch(rt)
			r.push(items)
			r.flush(rt, true)
			if f.seen == before && (len(items) == 0 || f.seen == *f.model.rv) {
				break
			}
		}
	}
}

// compare checks the record of one stream against the server's history.
func (r *recording) compare(rt *rapid.T, f *follower) {
	served := make(map[string]event)
	for _, e := range f.model.log {
		served[string(e.kind)+"@"+strconv.Itoa(e.rv)+string(e.o.doc)] = e
	}
	live := make(map[int64]patch.Doc)
	recordedAt := make(map[int][]string)
	last := 0
	for _, d := range r.history() {
		if d.Stream != f.st.ID() {
			continue
		}
		if d.Deleted {
			delete(live, d.ObjectID)
		} else {
			live[d.ObjectID] = d.Doc
		}
		if d.Source != 1 {
			continue
		}
		at, err := strconv.Atoi(d.RV)
		require.NoError(rt, err)
		require.GreaterOrEqual(rt, at, last, "I4: in the order served")
		last = at
		kind := string(delta.TypeOf(d.Type))
		e, ok := served[kind+"@"+d.RV+string(d.Doc)]
		require.True(rt, ok, "seq %d is a version that was served", d.Seq)
		recordedAt[at] = append(recordedAt[at], string(e.kind)+" "+e.o.name)
	}
	covered := r.coverage(f.st)
	for at, want := range f.model.events() {
		if covered(at) {
			sort.Strings(recordedAt[at])
			require.Equal(rt, want, recordedAt[at], "events of resource version %d", at)
		}
	}
	require.Equal(rt, f.model.texts(), sorted(live), "what lives")
	require.Equal(rt, len(f.model.live), f.st.Known().Len())
}

// coverage returns a function that reports whether a resource version of the stream is in no gap.
func (r *recording) coverage(st *Stream) func(rv int) bool {
	type bounds struct{ from, to int }
	var gaps []bounds
	rows, err := r.db.admin.Query(context.Background(), `SELECT coalesce(from_rv, '0')::int, to_rv::int FROM kuberewind.gaps_data WHERE cluster = $1 AND stream = $2`, r.cluster(), st.ID())
	require.NoError(r.t, err)
	defer rows.Close()
	for rows.Next() {
		var b bounds
		require.NoError(r.t, rows.Scan(&b.from, &b.to))
		gaps = append(gaps, b)
	}
	require.NoError(r.t, rows.Err())
	return func(rv int) bool {
		for _, b := range gaps {
			if rv > b.from && rv <= b.to {
				return false
			}
		}
		return true
	}
}

func (m *model) events() map[int][]string {
	events := make(map[int][]string)
	for _, e := range m.log {
		events[e.rv] = append(events[e.rv], string(e.kind)+" "+e.o.name)
	}
	for _, names := range events {
		sort.Strings(names)
	}
	return events
}

func (m *model) texts() []string {
	docs := make(map[int64]patch.Doc)
	for _, o := range m.live {
		docs[int64(len(docs))] = o.doc
	}
	return sorted(docs)
}

func sorted(docs map[int64]patch.Doc) []string {
	texts := make([]string, 0, len(docs))
	for _, doc := range docs {
		texts = append(texts, string(doc))
	}
	sort.Strings(texts)
	return texts
}

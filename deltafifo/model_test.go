package deltafifo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/delta"
)

// expected is an entry as the model expects it.
type expected struct {
	stream   int
	line     string // as describe returns it
	key      string // empty for bookmarks and markers
	after    *object
	bookmark bool
}

// model is a queue as simple as it can be: a slice, and maps folded from it whenever they are needed.
type model struct {
	q     *Queue
	fifos []*FIFO
	known []*known
	held  []expected
	out   []Entry // handed out
	rv    int
}

func newModel(streams int) *model {
	m := &model{q: New(Options{BookmarkLinger: 1})}
	for i := range streams {
		m.known = append(m.known, knowing())
		m.fifos = append(m.fifos, nil)
		m.reopen(i)
	}
	return m
}

func (m *model) reopen(i int) {
	if m.fifos[i] != nil {
		m.fifos[i].Close()
	}
	m.fifos[i] = m.q.FIFO(FIFOOptions{Stream: i, KeyFunction: nameOf, KnownObjects: m.known[i]})
}

func (m *model) version() string { m.rv++; return strconv.Itoa(m.rv) }

// state returns the stream's objects at the tail.
func (m *model) state(stream int) map[string]*object {
	state := map[string]*object{}
	for key, o := range m.known[stream].objs {
		state[key] = o.(*object)
	}
	for _, e := range m.held {
		switch {
		case e.stream != stream || e.key == "":
		case e.after == nil:
			delete(state, e.key)
		default:
			state[e.key] = e.after
		}
	}
	return state
}

func (m *model) expectSync(stream int, source delta.Source, o *object) {
	m.held = append(m.held, expected{stream: stream, line: fmt.Sprintf("%s Sync %v >", source, o), key: o.name, after: o})
}

func (m *model) expectInferred(stream int, o *object) {
	m.held = append(m.held, expected{stream: stream, line: fmt.Sprintf("inferred Deleted {%s %v} >", o.name, o), key: o.name})
}

// observe enqueues an event of the watch.
func (m *model) observe(t *rapid.T, stream int) {
	key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "key")
	before, rv := m.state(stream)[key], m.version()
	o := obj(key, rv, rv)
	typ, enqueue := cache.Added, m.fifos[stream].Add
	if before != nil && rapid.Bool().Draw(t, "same life") {
		o.uid = before.uid
		typ, enqueue = cache.Updated, m.fifos[stream].Update
		if rapid.Bool().Draw(t, "delete") {
			typ, enqueue = cache.Deleted, m.fifos[stream].Delete
		}
	}
	require.NoError(t, enqueue(o))
	e := expected{stream: stream, line: fmt.Sprintf("watch %s %v >%s", typ, o, rv), key: key, after: o}
	if typ == cache.Deleted {
		e.after = nil
	}
	m.held = append(m.held, e)
}

func (m *model) bookmark(stream int) {
	rv := m.version()
	for i := len(m.held) - 1; i >= 0; i-- {
		if m.held[i].stream == stream {
			if m.held[i].bookmark && i >= len(m.out) {
				m.held = slices.Delete(m.held, i, i+1)
			}
			break
		}
	}
	m.held = append(m.held, expected{stream: stream, line: "bookmark >" + rv, bookmark: true})
}

// list draws a list that follows an unobserved time.
func (m *model) list(t *rapid.T, stream int) []any {
	state, list := m.state(stream), []any{}
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		o, rv := state[key], m.version()
		if o == nil {
			o = obj(key, rv, rv)
		}
		changed := *o
		switch rapid.SampledFrom([]string{"as is", "as is", "gone", "version", "uid", "content"}).Draw(t, key) {
		case "gone":
			continue
		case "version":
			changed.rv, changed.body = rv, "body-"+rv
		case "uid":
			changed = *obj(key, rv, rv)
		case "content":
			changed.body = "content-" + rv
		}
		list = append(list, &changed)
	}
	return list
}

// replace enqueues a list page by page, and may abort it.
func (m *model) replace(t *rapid.T, stream int) {
	f, list, rv := m.fifos[stream], m.list(t, stream), m.version()
	require.NoError(t, f.BeginReplace("expired", "", ""))
	pages := slices.Collect(slices.Chunk(list, rapid.IntRange(1, 3).Draw(t, "page size")))
	taken := len(pages)
	abort := rapid.IntRange(0, 3).Draw(t, "abort") == 0
	if abort {
		taken = rapid.IntRange(0, taken).Draw(t, "pages taken")
	}
	want := delta.Marker{}
	missing := m.state(stream)
	for _, page := range pages[:taken] {
		require.NoError(t, f.ReplacePage(page, rv))
		for _, o := range page {
			m.expectListed(stream, o.(*object), &want)
			delete(missing, o.(*object).name)
		}
		m.churn(t)
	}
	if abort {
		f.AbortReplace()
		return
	}
	require.NoError(t, f.EndReplace(rv))
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		m.expectInferred(stream, missing[key])
		want.Vanished++
	}
	m.held = append(m.held, expected{stream: stream, line: fmt.Sprintf("replaced expired ..%s +%d ~%d -%d =%d >%s",
		rv, want.Appeared, want.Changed, want.Vanished, want.Unchanged, rv)})
}

func (m *model) expectListed(stream int, o *object, want *delta.Marker) {
	before := m.state(stream)[o.name]
	switch {
	case before == nil:
		m.expectSync(stream, delta.SourceRelist, o)
		want.Appeared++
	case before.uid != o.uid:
		m.expectInferred(stream, before)
		m.expectSync(stream, delta.SourceRelist, o)
		want.Appeared++
		want.Vanished++
	case before.rv != o.rv:
		m.expectSync(stream, delta.SourceRelist, o)
		want.Changed++
	case before.body != o.body:
		m.expectSync(stream, delta.SourceSchema, o)
		want.Changed++
	default:
		want.Unchanged++
	}
}

func (m *model) resync(t *rapid.T, stream int) {
	require.NoError(t, m.fifos[stream].Resync())
	for _, key := range m.known[stream].ListKeys() {
		if !slices.ContainsFunc(m.held, func(e expected) bool { return e.stream == stream && e.key == key }) {
			m.expectSync(stream, delta.SourceResync, m.known[stream].objs[key].(*object))
		}
	}
}

// churn is the consumer's work during a list.
func (m *model) churn(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "churn") {
	case 0:
		m.next(t)
	case 1:
		m.done(t)
	}
}

func (m *model) next(t *rapid.T) {
	fresh := m.held[len(m.out):]
	if len(fresh) == 0 {
		return
	}
	most := rapid.IntRange(1, 6).Draw(t, "at most")
	entries, err := m.q.Next(t.Context(), most, 0, 0)
	require.NoError(t, err)
	want := fresh[:min(most, len(fresh))]
	lines, streams := []string{}, []int{}
	for _, e := range want {
		lines, streams = append(lines, e.line), append(streams, e.stream)
	}
	require.Equal(t, lines, describe(entries))
	for i, e := range entries {
		require.Equal(t, streams[i], e.Stream)
	}
	m.out = append(m.out, entries...)
}

func (m *model) done(t *rapid.T) {
	n := rapid.IntRange(0, len(m.out)).Draw(t, "done")
	m.commit(m.out[:n])
	m.q.Done(n)
	m.out, m.held = m.out[n:], m.held[n:]
}

// commit makes entries known, possibly long before Done.
func (m *model) commit(entries []Entry) {
	for _, e := range entries {
		m.known[e.Stream.(int)].commit(e)
	}
}

func (m *model) check(t *rapid.T) {
	s := m.q.Stats()
	require.Equal(t, len(m.held), s.Entries)
	require.Equal(t, len(m.out), s.HandedOut)
	bytes := int64(0)
	for n := m.q.backlog.memory.nodes.head; n != nil; n = n.after {
		bytes += int64(n.entry.Bytes)
	}
	require.Equal(t, bytes, s.Bytes)
}

func TestTheQueueDoesWhatTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(2)
		stream := func(t *rapid.T) int { return rapid.IntRange(0, 1).Draw(t, "stream") }
		observe := func(t *rapid.T) { m.observe(t, stream(t)) }
		t.Repeat(map[string]func(*rapid.T){
			"":          m.check,
			"observe":   observe,
			"observe 2": observe,
			"bookmark": func(t *rapid.T) {
				s := stream(t)
				require.NoError(t, m.fifos[s].Bookmark(strconv.Itoa(m.rv+1)))
				m.bookmark(s)
			},
			"replace": func(t *rapid.T) { m.replace(t, stream(t)) },
			"resync":  func(t *rapid.T) { m.resync(t, stream(t)) },
			"next":    m.next,
			"done":    m.done,
			"commit":  func(*rapid.T) { m.commit(m.out) },
			"requeue": func(*rapid.T) { m.q.Requeue(); m.out = nil },
			"reopen":  func(t *rapid.T) { m.reopen(stream(t)) },
		})
	})
}

// Package marks reads the deltas that the timeline counts, each with its class.
//
// # What it guarantees
//
//   - docs/timeline.md defines the meaning of a filter in SQL. The tests compare the two.
//   - The time of a delta is its occurred_at: a delta that was recovered after a pause counts within the pause.
//   - A reading is bounded in time. It begins at the newest delta, and returns up to where it came.
//   - A slice of deltas bounds memory. A reading reads patches only if the class needs them, and objects only if the filter names a
//     path or a label.
//
// The class depends on the row, and on the first version of the object on the same day of observed_at. So counting folds
// nothing, and dropping other days changes no class. Only a filter by label folds.
package marks

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
)

// A Mark is a delta that the filter selects.
type Mark struct {
	history.Mark
	Class class.Class
}

// A Reader reads the marks of a record. Several goroutines may use it at once.
type Reader struct {
	rec *history.Record

	mu     sync.Mutex          // protects what follows
	labels map[daily]patch.Doc // of EndpointSlices and Endpoints: the metadata that names their controller
}

// A daily is a life on a day.
type daily struct {
	id  int64
	day time.Time
}

// onDay returns the life of a row, on its day.
func onDay(m *history.Mark) daily { return daily{m.ObjectID, m.ObservedAt.Truncate(24 * time.Hour)} }

// mostLabels bounds the memory of a Reader.
const mostLabels = 50_000

// NewReader returns a Reader of a record. The record must stay open as long as the Reader is used.
func NewReader(rec *history.Record) *Reader { return &Reader{rec: rec, labels: map[daily]patch.Doc{}} }

// A Reading reads the marks of one filter.
type Reading struct {
	reader  *Reader
	filter  ask.Filter
	streams map[int32]*history.Stream
	query   history.MarkQuery
	pointer []string
	keeps   bool // keeps patches
	// Hidden counts, by life, the excluded heartbeats that occurred at or after HiddenFrom.
	Hidden     map[int64]int64
	HiddenFrom time.Time
	// Missing are the days that could not be read.
	Missing []*history.MissingDayError
	damaged []lack.Lack // versions whose labels could not be read
}

// ReportTo adds to an answer what could not be read.
func (g *Reading) ReportTo(a *lack.Answer) {
	a.Lost(g.Missing...)
	a.Incomplete = append(a.Incomplete, g.damaged...)
}

// Begin begins a reading of deltas in a window. If ids is not nil, only these lives count.
func (r *Reader) Begin(ctx context.Context, f ask.Filter, w ask.Window, ids []int64) (*Reading, error) {
	streams, err := r.rec.Streams(ctx)
	if err != nil {
		return nil, err
	}
	g := &Reading{reader: r, filter: f, streams: map[int32]*history.Stream{}, pointer: tokens(f.Path), Hidden: map[int64]int64{}}
	for i := range streams {
		g.streams[streams[i].ID] = &streams[i]
	}
	g.query = history.MarkQuery{
		Streams: StreamsOf(streams, f.Resources), Namespaces: f.Namespaces, Name: f.Like(), ObjectIDs: ids, From: w.From, To: w.To, Types: f.Types, Manager: f.Manager,
		Bare: bare(streams), Objects: f.Path != "",
	}
	return g, CheckResources(streams, f.Resources)
}

// Knows reports whether a stream existed when the reading began. The class of deltas of a later stream is unknown.
func (g *Reading) Knows(stream int32) bool { return g.streams[stream] != nil }

// Streams returns the streams of the filter's resources, nil for all.
func (g *Reading) Streams() []int32 { return g.query.Streams }

// KeepPatches makes marks keep their patches.
func (g *Reading) KeepPatches() { g.keeps, g.query.Objects = true, true }

// HiddenInAll returns how many heartbeats were excluded.
func (g *Reading) HiddenInAll() (n int64) {
	for _, of := range g.Hidden {
		n += of
	}
	return n
}

// CheckResources refuses resources that the record never held.
func CheckResources(streams []history.Stream, resources []string) error {
	for _, name := range resources {
		if !slices.ContainsFunc(streams, func(s history.Stream) bool { return s.GroupResource().String() == name }) {
			return ask.Bad("resource=%s: the record holds no such resource; write it as pods or deployments.apps", ask.Cut(name))
		}
	}
	return nil
}

// StreamsOf returns the streams of some resources, nil for all.
func StreamsOf(streams []history.Stream, resources []string) []int32 {
	if len(resources) == 0 {
		return nil
	}
	ids := []int32{}
	for i := range streams {
		if slices.Contains(resources, streams[i].GroupResource().String()) {
			ids = append(ids, streams[i].ID)
		}
	}
	return ids
}

// bare returns the streams whose classes do not depend on the patch.
func bare(streams []history.Stream) (ids []int32) {
	for i := range streams {
		switch streams[i].GroupResource().String() {
		case "events", "events.events.k8s.io", "leases.coordination.k8s.io":
			ids = append(ids, streams[i].ID)
		}
	}
	return ids
}

func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	all := strings.Split(pointer[1:], "/")
	for i := range all {
		all[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(all[i])
	}
	return all
}

// Read returns the marks between two seqs, both included, in order of seq.
func (g *Reading) Read(ctx context.Context, from, to int64) ([]Mark, error) {
	rows, err := g.rows(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if err := g.reader.loadLabels(ctx, g.managed(rows)); err != nil {
		return nil, err
	}
	found := make([]Mark, 0, len(rows))
	for i := range rows {
		m := Mark{Mark: rows[i]}
		if err := g.classify(&m); err != nil {
			return nil, err
		}
		if g.counts(&m) {
			if m.Object = nil; !g.keeps {
				m.Patch = nil
			}
			found = append(found, m)
		}
	}
	return found, nil
}

// managed returns the lives whose controller must be known, each with a seq of the day.
func (g *Reading) managed(rows []history.Mark) map[daily]int64 {
	lives := map[daily]int64{}
	for i := range rows {
		if s := g.streams[rows[i].Stream]; s != nil && class.Managed(s.Group, s.Resource) {
			lives[onDay(&rows[i])] = rows[i].Seq
		}
	}
	return lives
}

// loadLabels reads the labels of lives that are not in memory.
func (r *Reader) loadLabels(ctx context.Context, lives map[daily]int64) error {
	r.mu.Lock()
	if len(r.labels) > mostLabels {
		clear(r.labels)
	}
	unknown, seqs := map[time.Time][]int64{}, map[time.Time]int64{}
	for l, seq := range lives {
		if _, known := r.labels[l]; !known {
			unknown[l.day], seqs[l.day] = append(unknown[l.day], l.id), seq
		}
	}
	r.mu.Unlock()
	for day, ids := range unknown {
		docs, err := r.rec.Lookup().FirstOfDay(ctx, seqs[day], ids)
		if err != nil {
			return err
		}
		r.mu.Lock()
		for _, id := range ids {
			r.labels[daily{id, day}] = lean(docs[id])
		}
		r.mu.Unlock()
	}
	return nil
}

// lean keeps only the parts of an object that its class depends on.
func lean(doc patch.Doc) patch.Doc {
	less := patch.Doc(`{"metadata":{`)
	for i, member := range []string{"annotations", "labels"} {
		value, ok := patch.Get(doc, "/metadata/"+member)
		if !ok {
			value = patch.Doc("{}")
		}
		if i > 0 {
			less = append(less, ',')
		}
		less = append(append(append(less, '"'), member...), '"', ':')
		less = append(less, value...)
	}
	return append(less, '}', '}')
}

func (g *Reading) classify(m *Mark) error {
	s := g.streams[m.Stream]
	if s == nil {
		s = &history.Stream{} // The stream began after the reading: its deltas are shown.
	}
	var err error
	if m.Patch != nil {
		if m.Patch, err = patch.Canonical(m.Patch); err != nil {
			return err
		}
	}
	d := change.Delta{Group: s.Group, Resource: s.Resource, Type: m.Type, Source: m.Source, Patch: m.Patch}
	if class.Managed(s.Group, s.Resource) {
		g.reader.mu.Lock()
		d.Object = g.reader.labels[onDay(&m.Mark)]
		g.reader.mu.Unlock()
	}
	m.Class = class.Of(d, m.Seq == m.ObjectID)
	return nil
}

// counts reports whether the filter selects a mark. It counts the heartbeats that the filter excludes.
func (g *Reading) counts(m *Mark) bool {
	if g.pointer != nil && !g.touches(m) {
		return false
	}
	if m.Class == class.Heartbeat && !slices.Contains(g.filter.Classes, class.Heartbeat) {
		if !m.OccurredAt.Before(g.HiddenFrom) {
			g.Hidden[m.ObjectID]++
		}
		return false
	}
	return g.filter.Classes == nil || slices.Contains(g.filter.Classes, m.Class)
}

// touches reports whether a delta changed a value at the path of the filter, below it, or around it.
func (g *Reading) touches(m *Mark) bool {
	if m.Patch == nil {
		return m.Object != nil && m.Type != delta.Deleted && around(g.pointer, nil, m.Object, nil)
	}
	for op := range patch.Operations(m.Patch) {
		if len(op.Path) >= len(g.pointer) && slices.Equal(op.Path[:len(g.pointer)], g.pointer) || around(g.pointer, op.Path, op.Value, op.Old) {
			return true
		}
	}
	return false
}

// around reports whether an operation replaced a value that contains the path, before or after.
func around(pointer, path []string, value, old patch.Doc) bool {
	if len(path) >= len(pointer) || !slices.Equal(path, pointer[:len(path)]) {
		return false
	}
	rest := Pointer(pointer[len(path):])
	_, now := patch.Get(value, rest)
	_, before := patch.Get(old, rest)
	return now || before
}

// Pointer returns the JSON pointer of some tokens.
func Pointer(tokens []string) string {
	var pointer strings.Builder
	for _, token := range tokens {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return pointer.String()
}

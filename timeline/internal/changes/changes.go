// Package changes lists the deltas of a window, the newest first. Each has the paths that it changed, as in the view
// kuberewind.changes.
package changes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/command"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
)

// MostLimit is the largest number of rows in one answer.
const MostLimit = 1000

// A Query selects the changes of a window.
type Query struct {
	Window  ask.Window
	Limit   int64
	Cursor  string
	Filter  ask.Filter
	Cluster string // for the command; "" if there is only one
}

// An Answer lists the changes.
type Answer struct {
	lack.Answer
	Rows    []Row                 `json:"rows"`
	Hidden  map[class.Class]int64 `json:"hidden"` // among the deltas that were read
	Next    string                `json:"next,omitempty"`
	Command string                `json:"command"`
}

// A Row is one delta.
type Row struct {
	find.Ref
	Seq      int64       `json:"seq"`
	Time     int64       `json:"time"`
	Type     delta.Type  `json:"type"`
	Class    class.Class `json:"class"`
	Manager  string      `json:"manager"`
	Evidence string      `json:"evidence"`
	Changes  []Change    `json:"changes"`
}

// A Change is one operation of a patch.
type Change struct {
	Op   string          `json:"op"`
	Path string          `json:"path"`
	From string          `json:"from,omitempty"` // source path of a move
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

// A Lister lists the changes of a record.
type Lister struct {
	Record   *history.Record
	Reader   *marks.Reader
	Patience time.Duration
}

// List returns the changes.
func (l *Lister) List(ctx context.Context, q Query, now time.Time) (*Answer, error) {
	state, err := lack.Read(ctx, l.Record, history.Scope{})
	if err != nil {
		return nil, err
	}
	first, last, err := l.bounds(ctx, q, state.Extent.LastSeq)
	if err != nil {
		return nil, err
	}
	reading, err := l.Reader.Begin(ctx, q.Filter, q.Window, nil)
	if err != nil {
		return nil, err
	}
	reading.KeepPatches()
	found, left, err := reading.Newest(ctx, first, last, int(q.Limit), l.Patience)
	if err != nil {
		return nil, err
	}
	a := &Answer{Answer: state.Answer(q.Window, now), Rows: []Row{}, Hidden: map[class.Class]int64{class.Heartbeat: reading.HiddenInAll()}, Command: commandOf(q)}
	reading.ReportTo(&a.Answer)
	if left >= first {
		a.Next = fmt.Sprintf("%d-%d", first, left)
	}
	return a, a.fill(ctx, l.Record, found)
}

// bounds returns the seqs of a window, or the rest that a cursor names.
func (l *Lister) bounds(ctx context.Context, q Query, head int64) (first, last int64, err error) {
	if q.Cursor == "" {
		first, last, err = l.Record.Timeline().Between(ctx, q.Window.From, q.Window.To)
		return first, min(last, head), err
	}
	_, err = fmt.Sscanf(q.Cursor, "%d-%d", &first, &last)
	if err != nil || fmt.Sprintf("%d-%d", first, last) != q.Cursor || first < 1 || last > head {
		return 0, 0, ask.BadCursor(q.Cursor)
	}
	return first, last, nil
}

func (a *Answer) fill(ctx context.Context, rec *history.Record, found []marks.Mark) error {
	ids := make([]int64, 0, len(found))
	for i := range found {
		ids = append(ids, found[i].ObjectID)
	}
	refs := map[int64]find.Ref{}
	for life, err := range rec.Lives(ctx, history.LifeQuery{ObjectIDs: ids}) {
		if err != nil {
			return err
		}
		refs[life.ObjectID] = find.RefOf(life)
	}
	for i := range found {
		m := &found[i]
		row := Row{Ref: refs[m.ObjectID], Seq: m.Seq, Time: m.OccurredAt.UnixMilli(), Type: m.Type, Class: m.Class, Manager: m.Manager, Evidence: m.Evidence, Changes: stepsOf(m)}
		a.Rows = append(a.Rows, row)
	}
	return nil
}

// stepsOf returns the operations of a patch, without bookkeeping.
func stepsOf(m *marks.Mark) []Change {
	steps := []Change{}
	for op := range patch.Operations(m.Patch) {
		if len(op.Path) > 1 && op.Path[0] == "metadata" && (op.Path[1] == "managedFields" || op.Path[1] == "resourceVersion" || op.Path[1] == "generation") {
			continue
		}
		c := Change{Op: op.Op, Path: marks.Pointer(op.Path), Old: field.Raw(op.Old), New: field.Raw(op.Value)}
		if op.Op == "move" {
			c.From = marks.Pointer(op.From)
		}
		steps = append(steps, c)
	}
	return steps
}

// commandOf returns replay log with the same bounds, and with those filters that it supports.
func commandOf(q Query) string {
	c, _ := command.Of(q.Cluster, "log", &q.Filter)
	c.Flag("--manager", q.Filter.Manager)
	for _, t := range q.Filter.Types {
		c.Flag("--type", string(t))
	}
	return c.Time("--since", q.Window.From).Time("--until", q.Window.To).String()
}

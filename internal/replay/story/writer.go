package story

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/words"
	"github.com/kuberewind/kuberewind/story"
)

// A printer writes the parts of a story in one output form.
type printer interface {
	title(root *story.Object) error
	entry(e *story.Entry, shown *entries.Entry) error
	remark(r entries.Remark) error
	rollouts(all []*story.Rollout) error
}

// A writer reads a story, and passes it to a printer.
type writer struct {
	*command
	rec     *env.Record
	story   *story.Story
	printer printer
	stamp   func(time.Time) string
	fold    *entries.Fold
	breaks  *entries.Breaks
	roots   map[*story.Object]bool // roots with a printed title
	shown   int
	damaged []error
}

func (c *command) writer(rec *env.Record, s *story.Story) *writer {
	w := &writer{command: c, rec: rec, story: s, roots: map[*story.Object]bool{}}
	w.fold = &entries.Fold{
		Cluster: rec.Cluster().Name, Folding: c.folding, Types: []delta.Type{delta.Added, delta.Updated, delta.Deleted, delta.Sync}, Zone: c.env.Zone(),
	}
	stamps := stamps{zone: c.env.Zone()}
	w.stamp = stamps.full
	if c.output == output.JSON {
		w.printer = &jsonPrinter{out: c.env.IOStreams.Out}
	} else {
		text := &textPrinter{out: c.env.IOStreams.Out, stamps: stamps, width: c.env.Width(), style: c.env.Style()}
		if c.person() {
			text.words.Room = words.RoomOnTerminal
		}
		w.printer = text
	}
	return w
}

// streamsOf returns the streams whose gaps affect a story.
func streamsOf(s *story.Story) []int32 {
	ids := []int32{}
	for _, o := range s.Objects {
		if !slices.Contains(ids, o.Stream.ID) {
			ids = append(ids, o.Stream.ID)
		}
	}
	return ids
}

// write prints the title before it searches the owned objects, because the search can take long.
func (w *writer) write(ctx context.Context) error {
	w.notes(w.bounds.From.Notes)
	w.notes(w.bounds.To.Notes)
	if err := w.title(w.story.Objects[0]); err != nil {
		return err
	}
	if err := w.story.Search(ctx); err != nil {
		return err
	}
	w.breaks = entries.NewBreaks(w.rec.Record, history.Scope{Streams: streamsOf(w.story)}, &w.bounds, w.stamp, true, false)
	if err := w.breaks.Refresh(ctx); err != nil {
		return err
	}
	for e, err := range w.story.Entries(ctx) {
		if err != nil {
			err = w.broken(&e, err)
		} else {
			err = w.entry(ctx, &e)
		}
		if err != nil {
			return err
		}
	}
	return w.finish()
}

// notes prints the notes that do not also appear as lines of the story.
func (w *writer) notes(all []history.Note) {
	w.env.Notes(slices.DeleteFunc(slices.Clone(all), func(n history.Note) bool {
		return n.Kind == history.NoteGap || n.Kind == history.NoteEstimated || n.Kind == history.NoteOneEtcd && !n.From.IsZero()
	}))
}

func (w *writer) broken(e *story.Entry, err error) error {
	r, ok := entries.Broken(err)
	if !ok {
		return err
	}
	if r.Kind == "damaged" && e.Stream != nil && !w.bounds.Within(&e.Delta, e.Span, false) {
		return nil
	}
	w.damaged = append(w.damaged, err)
	return w.printer.remark(r)
}

func (w *writer) entry(ctx context.Context, e *story.Entry) error {
	if !w.bounds.Within(&e.Delta, e.Span, false) {
		return nil
	}
	if w.repeated(e) {
		w.fold.Folded.Add(change.Event, e.Stream.Kind)
		return nil
	}
	shown := w.fold.EntryOf(&e.Version)
	if shown == nil {
		return nil
	}
	shown.Times.Happened(e.Span)
	due, err := w.breaks.Before(ctx, &e.Delta)
	if err != nil {
		return err
	}
	if err := w.remarks(due); err != nil {
		return err
	}
	root := e.Object
	for root.Owner != nil {
		root = root.Owner
	}
	if err := w.title(root); err != nil {
		return err
	}
	w.shown++
	return w.printer.entry(e, shown)
}

// title prints the title of a root object, once.
func (w *writer) title(root *story.Object) error {
	if w.roots[root] {
		return nil
	}
	w.roots[root] = true
	return w.printer.title(root)
}

// repeated reports whether a delta only repeats an Event, or only records that it expired.
func (w *writer) repeated(e *story.Entry) bool {
	return e.Event != nil && (e.Type == delta.Updated || e.Type == delta.Deleted) && w.folding.Active && !w.folding.All()
}

func (w *writer) remarks(all []entries.Remark) error {
	for _, r := range all {
		if err := w.printer.remark(r); err != nil {
			return err
		}
	}
	return nil
}

// finish prints how many deltas were only counted, and the rollouts. It returns an error for deltas that could not be shown.
func (w *writer) finish() error {
	if err := w.remarks(w.breaks.Rest()); err != nil {
		return err
	}
	if w.shown == 0 && w.fold.Folded.Total() == 0 && len(w.damaged) == 0 {
		w.env.Note("nothing happened to these objects in that time")
	}
	if err := w.counted(); err != nil {
		return err
	}
	if err := w.printer.rollouts(w.rollouts()); err != nil {
		return fmt.Errorf("print the rollouts: %w", err)
	}
	return entries.Damage(w.damaged)
}

// counted prints how many deltas were only counted.
func (w *writer) counted() error {
	switch more := w.fold.More(); {
	case more == "":
		return nil
	case w.output == output.JSON:
		w.env.Note(more)
		return nil
	default:
		return w.printer.remark(entries.Remark{Text: more})
	}
}

// rollouts returns the rollouts that started in the requested time range.
func (w *writer) rollouts() (within []*story.Rollout) {
	for _, r := range w.story.Rollouts() {
		if r.Start == nil || w.bounds.Within(&history.Delta{Seq: r.Start.Seq}, r.Start.Span, false) {
			within = append(within, r)
		}
	}
	return within
}

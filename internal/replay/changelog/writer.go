package changelog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
)

// mostReversed bounds the deltas that are kept for output newest first.
const mostReversed = 10_000

// logWriter writes the deltas of one query.
type logWriter struct {
	*logCommand
	rec     *env.Record
	scope   history.Scope
	printer *logPrinter
	keep    func(*history.Delta) bool
	// header returns the title of a life; nil for no titles.
	header func(*history.Delta) string
	fold   *entries.Fold

	breaks  *entries.Breaks
	life    int64
	shown   int
	damaged []error
	holding bool       // keep lines instead of printing them
	kept    []keptLine // in the order of the record
	title   *keptLine  // the title for the oldest kept line, if kept does not hold it
	deltas  int        // number of deltas in kept
}

// keptLine is a line for later output.
type keptLine struct {
	show         func() error
	delta, title bool
}

// write prints the log of a query. If reading fails, it still prints the waiting groups.
func (w *logWriter) write(ctx context.Context, query history.Query) error {
	return errors.Join(w.readAll(ctx, query), w.printer.flush())
}

func (w *logWriter) readAll(ctx context.Context, query history.Query) error {
	if err := w.bounds.Resolve(ctx, w.rec.Record, w.env.Note, w.scope, &query); err != nil {
		return err
	}
	w.notes(w.bounds.From.Notes)
	w.notes(w.bounds.To.Notes)
	w.breaks = entries.NewBreaks(w.rec.Record, w.scope, &w.bounds, w.printer.stamp, w.header == nil, w.follow)
	if err := w.breaks.Refresh(ctx); err != nil {
		return err
	}
	if w.fromNow {
		query.FromSeq, query.From = w.bounds.To.Seq+1, time.Time{}
	} else if w.holding = w.most() > 0; w.holding || !w.follow {
		if err := w.past(ctx, query); err != nil {
			return err
		}
		query.FromSeq, query.From = w.bounds.To.Seq+1, time.Time{}
	}
	if !w.follow {
		return w.finish(ctx)
	}
	query.ToSeq = 0
	if err := w.each(ctx, w.rec.FollowVersions(ctx, query)); err != nil {
		return err
	}
	return w.finish(ctx)
}

// past prints the recorded deltas, or the newest of them.
func (w *logWriter) past(ctx context.Context, query history.Query) error {
	if err := w.each(ctx, w.rec.Versions(ctx, query)); err != nil {
		return err
	}
	if !w.follow {
		if err := w.remarks(w.breaks.Rest()); err != nil {
			return err
		}
	}
	return w.release()
}

// notes prints the notes that do not also appear as lines of the log.
func (w *logWriter) notes(all []history.Note) {
	w.env.Notes(slices.DeleteFunc(slices.Clone(all), func(n history.Note) bool {
		return n.Kind == history.NoteGap || n.Kind == history.NoteEstimated ||
			n.Kind == history.NoteOneEtcd && !n.From.IsZero() || // Each line has its time.
			w.follow && n.Kind == history.NoteAfterEnd
	}))
}

func (w *logWriter) each(ctx context.Context, versions iter.Seq2[history.Version, error]) error {
	for v, err := range versions {
		if err != nil {
			err = w.broken(ctx, &v, err)
		} else {
			err = w.version(ctx, &v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// broken prints a remark in the place of a row that cannot be read. It returns an error that is not about one row or one
// day, which ends the reading.
func (w *logWriter) broken(ctx context.Context, v *history.Version, err error) error {
	r, ok := entries.Broken(err)
	if !ok {
		return err
	}
	if r.Kind == "damaged" && v.Stream != nil {
		if held, _, failed := w.bounds.Holds(ctx, &v.Delta, w.follow); failed != nil || !held || !w.keep(&v.Delta) {
			return failed
		}
	}
	w.damaged = append(w.damaged, err)
	return w.emit(func() error { return w.printer.remark(r) })
}

func (w *logWriter) version(ctx context.Context, v *history.Version) error {
	held, span, err := w.bounds.Holds(ctx, &v.Delta, w.follow)
	if err != nil || !held || !w.keep(&v.Delta) {
		return err
	}
	e := w.fold.EntryOf(v)
	if e == nil {
		return nil
	}
	e.Times.Happened(span)
	due, err := w.breaks.Before(ctx, &v.Delta)
	if err := errors.Join(err, w.remarks(due)); err != nil {
		return err
	}
	if w.header != nil && !w.newestFirst && v.ObjectID != w.life {
		w.life = v.ObjectID
		title := w.header(&v.Delta)
		if err := w.put(keptLine{show: func() error { return w.printer.title(title) }, title: true}); err != nil {
			return err
		}
	}
	w.shown++
	return w.put(keptLine{show: func() error { return w.entry(ctx, v.ObjectID, e) }, delta: true})
}

// entry prints one delta. A Deleted has the last writer, if the record proves it.
func (w *logWriter) entry(ctx context.Context, objectID int64, e *entries.Entry) error {
	if e.Type == delta.Deleted {
		last, found, err := w.rec.Lookup().LastWriter(ctx, objectID, e.Seq)
		if err != nil {
			return err
		}
		if found {
			span, err := w.bounds.When(ctx, &history.Delta{Seq: last.Seq, ObservedAt: last.ObservedAt, OccurredAt: last.OccurredAt})
			if err != nil {
				return err
			}
			e.LastManager = entries.NewLastManager(&last, span)
		}
	}
	return w.printer.entry(e)
}

// remarks prints remarks between the deltas.
func (w *logWriter) remarks(all []entries.Remark) error {
	for _, r := range all {
		if err := w.emit(func() error { return w.printer.remark(r) }); err != nil {
			return err
		}
	}
	return nil
}

// emit prints a line, or keeps it for later.
func (w *logWriter) emit(what func() error) error { return w.put(keptLine{show: what}) }

func (w *logWriter) put(line keptLine) error {
	if !w.holding {
		return line.show()
	}
	w.kept = append(w.kept, line)
	if line.delta {
		w.deltas++
	}
	for ; w.deltas > w.most(); w.kept = w.kept[1:] {
		switch oldest := w.kept[0]; {
		case oldest.delta:
			w.deltas--
		case oldest.title:
			w.title = &oldest
		}
	}
	return nil
}

// release prints the kept lines.
func (w *logWriter) release() error {
	w.holding = false
	if w.newestFirst {
		slices.Reverse(w.kept)
	} else if w.title != nil && len(w.kept) > 0 && !w.kept[0].title {
		w.kept = slices.Insert(w.kept, 0, *w.title)
	}
	for _, line := range w.kept {
		if err := line.show(); err != nil {
			return err
		}
	}
	if left := w.shown - w.deltas; w.newestFirst && w.limit == 0 && left > 0 {
		w.env.Note(fmt.Sprintf("%d older deltas are not shown; use --limit to show more", left))
	}
	w.kept = nil
	return nil
}

// finish prints how many deltas were only counted, and returns an error for deltas that could not be shown.
func (w *logWriter) finish(ctx context.Context) error {
	if err := w.printer.flush(); err != nil {
		return err
	}
	more := w.fold.More()
	if more != "" && w.printer.format != output.JSON {
		if err := w.printer.folded(more); err != nil {
			return err
		}
	} else if more != "" {
		w.env.Note(more)
	}
	if w.shown == 0 && more == "" && len(w.damaged) == 0 && !w.follow {
		w.env.Note("no matching object changed in that time")
		if err := w.suggest(ctx); err != nil {
			return err
		}
	}
	return entries.Damage(w.damaged)
}

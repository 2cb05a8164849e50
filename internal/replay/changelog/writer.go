package changelog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/env"
)

// mostReversed bounds what is kept to be printed newest first.
const mostReversed = 10_000

// logWriter writes the deltas of one query.
type logWriter struct {
	*logCommand
	rec     *env.Record
	scope   history.Scope
	printer *logPrinter
	keep    func(*history.Delta) bool
	// header gives a title over each life; nil for none.
	header func(*history.Delta) string
	fold   *entries.Fold

	breaks  *entries.Breaks
	life    int64
	shown   int
	damaged []error
	kept    []keptLine // newest first: what will be printed
	deltas  int        // among them
}

// keptLine is what will be printed later.
type keptLine struct {
	print func() error
	delta bool
}

// errEnough ends a reading that has given what was asked for.
var errEnough = errors.New("enough")

func (w *logWriter) write(ctx context.Context, query history.Query) error {
	if err := w.bounds.Resolve(ctx, w.rec.Record, w.env.Note, w.scope, &query); err != nil {
		return err
	}
	w.notes(w.bounds.From.Notes)
	w.notes(w.bounds.To.Notes)
	w.breaks = entries.NewBreaks(w.rec.Record, w.scope, &w.bounds, w.printer.stamp, w.header == nil, w.follow)
	if err := w.breaks.Refresh(ctx); err != nil {
		return err
	}
	var versions iter.Seq2[history.Version, error]
	if w.follow {
		query.ToSeq = 0
		versions = w.rec.FollowVersions(ctx, query)
	} else {
		versions = w.rec.Versions(ctx, query)
	}
	err := w.each(ctx, versions)
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return w.finish(err)
}

// notes prints those that are not lines of the log anyway.
func (w *logWriter) notes(all []history.Note) {
	w.env.Notes(slices.DeleteFunc(slices.Clone(all), func(n history.Note) bool {
		return n.Kind == history.NoteGap || n.Kind == history.NoteEstimated || w.follow && n.Kind == history.NoteAfterEnd
	}))
}

func (w *logWriter) each(ctx context.Context, versions iter.Seq2[history.Version, error]) error {
	for v, err := range versions {
		if err != nil {
			err = w.broken(&v, err)
		} else {
			err = w.version(ctx, &v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// broken shows a row that cannot be read where it would be. What is not about a row or a day ends the reading.
func (w *logWriter) broken(v *history.Version, err error) error {
	var damaged *history.DamagedError
	var missing *history.MissingDayError
	r := entries.Remark{Text: err.Error()}
	switch {
	case errors.As(err, &damaged):
		if v.Stream != nil && (!w.bounds.Holds(&v.Delta, w.follow) || !w.keep(&v.Delta)) {
			return nil
		}
		r.Kind, r.Seq = "damaged", damaged.Seq
		if damaged.Stream != nil {
			r.Group, r.Resource = damaged.Stream.Group, damaged.Stream.Resource
		}
	case errors.As(err, &missing):
		r.Kind = "missing_day"
	default:
		return err
	}
	w.damaged = append(w.damaged, err)
	return w.print(func() error { return w.printer.remark(r) })
}

func (w *logWriter) version(ctx context.Context, v *history.Version) error {
	if !w.bounds.Holds(&v.Delta, w.follow) || !w.keep(&v.Delta) {
		return nil
	}
	e := w.fold.EntryOf(v)
	if e == nil {
		return nil
	}
	due, err := w.breaks.Before(ctx, &v.Delta)
	if err := errors.Join(err, w.remarks(due)); err != nil {
		return err
	}
	if w.header != nil && !w.newestFirst && v.ObjectID != w.life {
		w.life = v.ObjectID
		title := w.header(&v.Delta)
		if err := w.print(func() error { return w.printer.title(title) }); err != nil {
			return err
		}
	}
	if err := w.later(func() error { return w.printer.entry(e) }, true); err != nil {
		return err
	}
	if w.shown++; w.limit > 0 && w.shown >= w.limit && !w.newestFirst {
		return errEnough
	}
	return nil
}

// remarks prints lines between the deltas.
func (w *logWriter) remarks(all []entries.Remark) error {
	for _, r := range all {
		if err := w.print(func() error { return w.printer.remark(r) }); err != nil {
			return err
		}
	}
	return nil
}

// print prints now, or keeps what is to be printed in the other order.
func (w *logWriter) print(what func() error) error { return w.later(what, false) }

func (w *logWriter) later(what func() error, delta bool) error {
	if !w.newestFirst {
		return what()
	}
	w.kept = append(w.kept, keptLine{what, delta})
	if delta {
		w.deltas++
	}
	for ; w.deltas > w.most(); w.kept = w.kept[1:] {
		if w.kept[0].delta {
			w.deltas--
		}
	}
	return nil
}

// most is how many deltas are shown newest first.
func (w *logWriter) most() int {
	if w.limit > 0 {
		return w.limit
	}
	return mostReversed
}

// finish prints what is left, and says what could not be shown.
func (w *logWriter) finish(ended error) error {
	if ended == nil && !w.follow {
		if err := w.remarks(w.breaks.Rest()); err != nil {
			return err
		}
	}
	for _, line := range slices.Backward(w.kept) {
		if err := line.print(); err != nil {
			return err
		}
	}
	if w.newestFirst && w.limit == 0 && w.shown > w.deltas {
		w.env.Note(fmt.Sprintf("%d older deltas are not shown; --limit says how many are", w.shown-w.deltas))
	}
	if w.shown == 0 && w.fold.Quieted == 0 && len(w.damaged) == 0 && !w.follow {
		w.env.Note("nothing of what was asked for changed in that time")
	}
	if w.fold.Quieted > 0 {
		w.env.Note(fmt.Sprintf("%d objects that were there when their recording began are not shown; --type Sync shows them", w.fold.Quieted))
	}
	return damageError(w.damaged)
}

// damageError says that something of an answer is missing: the rows were named where they would have been.
func damageError(damaged []error) error {
	switch len(damaged) {
	case 0:
		return nil
	case 1:
		return damaged[0]
	}
	return fmt.Errorf("%d deltas cannot be shown, the first because: %w", len(damaged), damaged[0])
}

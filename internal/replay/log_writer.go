package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/history"
)

// mostReversed bounds what is kept to be printed newest first.
const mostReversed = 10_000

// logWriter writes the deltas of one query.
type logWriter struct {
	*logCommand
	rec     *Record
	scope   history.Scope
	printer *logPrinter
	keep    func(*history.Delta) bool
	// header gives a title over each life; nil for none.
	header func(*history.Delta) string
	// quietSync leaves out what was only found or stored again.
	quietSync bool

	breaks  interruptions
	life    int64
	shown   int
	quieted int
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
	if err := w.bounds.resolve(ctx, w.env, w.rec, w.scope, &query); err != nil {
		return err
	}
	w.notes(w.bounds.from.Notes)
	w.notes(w.bounds.to.Notes)
	w.breaks = interruptions{rec: w.rec, scope: w.scope, bounds: &w.bounds, printer: w.printer, brief: w.header == nil, follow: w.follow}
	if err := w.breaks.refresh(ctx); err != nil {
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
	r := remark{Text: err.Error()}
	switch {
	case errors.As(err, &damaged):
		if v.Stream != nil && (!w.bounds.holds(&v.Delta, w.follow) || !w.keep(&v.Delta)) {
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
	if !w.bounds.holds(&v.Delta, w.follow) || !w.keep(&v.Delta) {
		return nil
	}
	e := w.entryOf(v)
	if e == nil {
		return nil
	}
	if err := w.breaks.before(ctx, &v.Delta, w.print); err != nil {
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

// entryOf is what is shown of a version; nil if it was not asked for.
func (w *logWriter) entryOf(v *history.Version) *entry {
	if len(w.managers) > 0 && !slices.ContainsFunc(w.managers, func(m string) bool {
		matched, _ := path.Match(m, v.Manager) // tried when it was read
		return matched
	}) {
		return nil
	}
	if v.Source == "resync" && !slices.Contains(w.wanted, cache.Sync) {
		return nil // Nothing happened.
	}
	if w.quietSync && v.Type == cache.Sync && v.Source == "list" {
		w.quieted++
		return nil
	}
	all := w.changesOf(v)
	about := summary(v)
	switch {
	case len(w.patterns) > 0:
		var found []change
		for _, p := range w.patterns {
			for _, c := range p.selectFrom(all) {
				if !slices.ContainsFunc(found, func(f change) bool { return f.op == c.op && f.path.String() == c.path.String() }) {
					found = append(found, c)
				}
			}
		}
		if len(found) == 0 {
			return nil
		}
		all = found
	case !w.allFields:
		shown := visible(all)
		if about == "" && len(shown) == 0 {
			about = "nothing but " + fieldNames(all)
		}
		all = shown
	}
	e := newEntry(w.rec.Cluster().Name, v, about, all)
	if w.diff {
		e.Diff = w.difference(v)
	}
	return e
}

// changesOf gives what a delta changed. The coming and the going of an object are changes of the object as a whole.
func (w *logWriter) changesOf(v *history.Version) []change {
	if v.Before == nil {
		doc := v.Doc
		if !w.allFields && len(w.patterns) == 0 {
			doc = withoutBookkeeping(doc)
		}
		return changes(nil, doc)
	}
	all := changes(v.Before, v.Doc)
	if v.Type == cache.Deleted {
		gone := v.Doc
		if !w.allFields && len(w.patterns) == 0 {
			gone = withoutBookkeeping(gone)
		}
		all = append(all, change{op: opRemove, old: gone})
	}
	return all
}

// fieldNames names what changed, each once: the resource version only if it is all.
func fieldNames(all []change) string {
	var names []string
	for _, c := range all {
		name := c.path[:min(2, len(c.path))].String()
		if !slices.Contains(names, name) && (name != "metadata.resourceVersion" || len(all) == 1) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func (w *logWriter) difference(v *history.Version) string {
	title := v.Stream.GroupResource().String() + "/" + objectName(v.Namespace, v.Name)
	if v.Type == cache.Deleted {
		return unified(title, v.Doc, nil, "rv "+v.RV, "", w.allFields)
	}
	before := "the version before"
	return unified(title, v.Before, v.Doc, before, "rv "+v.RV, w.allFields)
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
		if err := w.breaks.rest(w.print); err != nil {
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
	if w.shown == 0 && w.quieted == 0 && len(w.damaged) == 0 && !w.follow {
		w.env.Note("nothing of what was asked for changed in that time")
	}
	if w.quieted > 0 {
		w.env.Note(fmt.Sprintf("%d objects that were there when their recording began are not shown; --type Sync shows them", w.quieted))
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

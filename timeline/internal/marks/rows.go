package marks

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/selection"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
)

// rows reads the rows that the database can select. A filter by label selects among versions.
func (g *Reading) rows(ctx context.Context, from, to int64) ([]history.Mark, error) {
	q := g.query
	q.FromSeq, q.ToSeq = from, to
	if g.filter.Labels == nil {
		return g.reader.rec.Timeline().Marks(ctx, q)
	}
	// The labels belong to the whole object, so the reader folds the versions of these rows' lives.
	q.Objects, q.Bare = true, nil
	rows, err := g.reader.rec.Timeline().Marks(ctx, q)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	labelled, err := g.labelled(ctx, rows)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rows, func(m history.Mark) bool { return !labelled[m.Seq] }), nil
}

// labelled returns the seqs of the rows whose object matches the labels, in the row's version or the previous one.
func (g *Reading) labelled(ctx context.Context, rows []history.Mark) (map[int64]bool, error) {
	ids := make([]int64, 0, len(rows))
	for i := range rows {
		ids = append(ids, rows[i].ObjectID)
	}
	slices.Sort(ids)
	q := history.Query{ObjectIDs: slices.Compact(ids), FromSeq: rows[0].Seq, ToSeq: rows[len(rows)-1].Seq}
	found := map[int64]bool{}
	for v, err := range g.reader.rec.Versions(ctx, q) {
		var damaged *history.DamagedError
		var missing *history.MissingDayError
		switch {
		case errors.As(err, &missing) && missing.LastSeq < rows[0].Seq:
			g.lost(missing) // There may be marks from before the first row.
			continue
		case err != nil && !errors.As(err, &damaged):
			return nil, err
		case damaged != nil:
			g.damaged = append(g.damaged, lack.DamagedAt(v.OccurredAt, damaged))
		}
		found[v.Seq] = selects(g.filter.Labels, v.Doc) || selects(g.filter.Labels, v.Before)
	}
	return found, nil
}

func selects(s labels.Selector, doc patch.Doc) bool {
	return doc != nil && s.Matches(labels.Set(selection.StringsAt(doc, "/metadata/labels")))
}

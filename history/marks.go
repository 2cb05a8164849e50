package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// A Mark is a delta without its object, unless the query requests objects.
type Mark struct {
	Seq, ObjectID          int64
	Stream                 int32
	Type                   delta.Type
	Source                 delta.Source
	ObservedAt, OccurredAt time.Time
	Manager, Evidence      string    // Manager is "" if nothing proves the writer
	Patch                  []byte    // as jsonb prints it; nil if there is none, or if the query did not request it
	Object                 patch.Doc // likewise; only for rows without a patch
}

// A MarkQuery selects marks. Zero values do not bound.
type MarkQuery struct {
	Streams        []int32 // nil means all
	Namespaces     []string
	Name           string // a pattern of SQL's LIKE
	ObjectIDs      []int64
	Seqs           []int64   // only these; without ObjectIDs
	FromSeq, ToSeq int64     // inclusive; ToSeq is required
	From, To       time.Time // of occurred_at; To is exclusive
	Types          []delta.Type
	Manager        string
	Bare           []int32 // streams whose patches are not read; for other streams, Updated and Sync bring their patches
	Objects        bool    // every row brings its patch, or else its object; Bare is ignored
}

// A Timeline finds deltas by time, without their objects.
type Timeline struct{ view *view }

// Timeline returns the reader of deltas by time.
func (r *Record) Timeline() Timeline { return Timeline{view: r.view} }

// Marks returns the marks of a query in the order of seq. The caller must bound the seqs: Marks reads all rows between them
// at once. A *MissingDayError names a day that holds some of the seqs.
func (t Timeline) Marks(ctx context.Context, q MarkQuery) (found []Mark, err error) {
	kinds, err := typeNumbers(q.Types)
	if err != nil {
		return nil, err
	}
	days, err := t.view.daysFrom(ctx, q.FromSeq, q.ToSeq)
	if err != nil {
		return nil, err
	}
	for i := range days {
		if q.Seqs != nil && !slices.ContainsFunc(q.Seqs, days[i].holds) {
			continue // This day holds none of the seqs, so its partition may be gone.
		}
		if err := t.view.present(ctx, &days[i]); err != nil {
			return nil, err
		}
		if found, err = t.marksOf(ctx, &days[i], &q, kinds, found); err != nil {
			return nil, fmt.Errorf("read the deltas of %s: %w", days[i].Day.Format(time.DateOnly), err)
		}
	}
	return found, nil
}

func (t Timeline) marksOf(ctx context.Context, d *Day, q *MarkQuery, kinds []int16, found []Mark) ([]Mark, error) {
	sql, args := q.statement(t.view.cluster.Number, d, kinds)
	rows, err := t.view.db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var m Mark
		var kind, source, evidence int16
		var object []byte
		if err := rows.Scan(&m.Seq, &m.ObjectID, &m.Stream, &kind, &source, &m.ObservedAt, &m.OccurredAt, &m.Manager, &evidence, &m.Patch, &object); err != nil {
			return nil, err
		}
		m.Type, m.Source, m.Evidence, m.Object = delta.TypeOf(kind), delta.SourceOf(source), evidenceName(evidence), object
		found = append(found, m)
	}
	return found, rows.Err()
}

// eachMark looks marks up by an index, as eachLifesDeltas does.
const eachMark = `unnest($%d::bigint[]) AS o (id)
		CROSS JOIN LATERAL (
			SELECT * FROM kuberewind.record_deltas
			WHERE cluster = $1 AND %s = o.id AND seq BETWEEN $2 AND $3 AND observed_at BETWEEN $4 AND $5
			OFFSET 0
		) AS d`

func (q *MarkQuery) statement(cluster int32, d *Day, kinds []int16) (string, []any) {
	args := []any{cluster, max(q.FromSeq, d.FirstSeq), min(q.ToSeq, d.LastSeq), d.FirstAt, d.LastAt}
	if !q.Objects {
		args = append(args, append([]int32{}, q.Bare...)) // SQL compares nothing with NULL, so Bare may not be nil.
	}
	where := new(strings.Builder)
	also := func(condition string, arg any) {
		args = append(args, arg)
		fmt.Fprintf(where, condition, len(args))
	}
	source := "kuberewind.record_deltas d"
	each := func(column string, values []int64) {
		args = append(args, values)
		source = fmt.Sprintf(eachMark, len(args), column)
	}
	switch {
	case q.ObjectIDs != nil:
		each("object_id", q.ObjectIDs)
	case q.Seqs != nil:
		each("seq", q.Seqs)
	}
	if q.Streams != nil {
		also(" AND d.stream = ANY ($%d::int[])", q.Streams)
	}
	if kinds != nil {
		also(" AND d.type = ANY ($%d::smallint[])", kinds)
	}
	if !q.From.IsZero() {
		also(" AND d.occurred_at >= $%d", q.From)
	}
	if !q.To.IsZero() {
		also(" AND d.occurred_at < $%d", q.To)
	}
	if q.Manager != "" {
		also(" AND d.manager = $%d AND d.manager_evidence IN (1, 2)", q.Manager)
	}
	where.WriteString(q.lifeConditions(&args))
	return `SELECT d.seq, d.object_id, d.stream, d.type, d.source, d.observed_at, d.occurred_at,
			CASE WHEN d.manager_evidence IN (1, 2) THEN coalesce(d.manager, '') ELSE '' END, coalesce(d.manager_evidence, 0),
			` + textColumns(q.Objects) + `
		FROM ` + source + `
		WHERE d.cluster = $1 AND d.seq BETWEEN $2 AND $3 AND d.observed_at BETWEEN $4 AND $5` + where.String() + ` ORDER BY d.seq`, args
}

// textColumns excludes texts that the caller does not need: texts are most of the data sent.
func textColumns(objects bool) string {
	if objects {
		return "d.patch::text, CASE WHEN d.patch IS NULL THEN d.object::text END"
	}
	return "CASE WHEN d.type IN (2, 4) AND d.stream <> ALL ($6::int[]) THEN d.patch::text END, NULL"
}

// lifeConditions bound the lives by namespace and name. PostgreSQL looks the lives up row by row.
func (q *MarkQuery) lifeConditions(args *[]any) string {
	var conditions strings.Builder
	if q.Namespaces != nil {
		*args = append(*args, q.Namespaces)
		fmt.Fprintf(&conditions, " AND l.namespace = ANY ($%d::text[])", len(*args))
	}
	if q.Name != "" {
		*args = append(*args, q.Name)
		fmt.Fprintf(&conditions, " AND l.name LIKE $%d", len(*args))
	}
	if conditions.Len() == 0 {
		return ""
	}
	return " AND EXISTS (SELECT FROM kuberewind.record_lives l WHERE l.cluster = d.cluster AND l.object_id = d.object_id" + conditions.String() + ")"
}

// Between returns the seqs between which all deltas lie that occurred at or after one time and before another. Deltas that
// were recovered after a pause, or after an interruption of a stream, have later seqs than earlier events. So last may lie
// beyond the end of the window; LastBefore returns the seq at that end. If there are no deltas, last is below first. If an
// edge falls on a day whose partition is gone, the whole day is included.
func (t Timeline) Between(ctx context.Context, from, to time.Time) (first, last int64, err error) {
	err = t.view.inSnapshot(ctx, func(v *view) error {
		f := calendar{view: v}
		var missing *MissingDayError
		if first, err = f.lastBefore(ctx, from); errors.As(err, &missing) {
			first, err = missing.FirstSeq-1, nil
		}
		if err != nil {
			return err
		}
		until, err := f.caughtUpUntil(ctx, from, to)
		if err != nil {
			return err
		}
		if last, err = f.lastBefore(ctx, until); errors.As(err, &missing) {
			last, err = missing.LastSeq, nil
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("find the deltas from %s to %s: %w", stamp(from), stamp(to), err)
	}
	return first + 1, last, nil
}

// LastBefore returns the last seq that was observed before a time, or 0. On a day whose partition is gone, it returns the
// last seq of that day.
func (t Timeline) LastBefore(ctx context.Context, at time.Time) (seq int64, err error) {
	err = t.view.inSnapshot(ctx, func(v *view) error {
		seq, err = calendar{view: v}.lastBefore(ctx, at)
		return err
	})
	var missing *MissingDayError
	switch {
	case errors.As(err, &missing):
		return missing.LastSeq, nil
	case err != nil:
		return 0, fmt.Errorf("find the last delta before %s: %w", stamp(at), err)
	}
	return seq, nil
}

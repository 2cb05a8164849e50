package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/patch"
)

// A Mark is a delta as far as it is counted: without its object, unless the query asks for it.
type Mark struct {
	Seq, ObjectID          int64
	Stream                 int32
	Type                   delta.Type
	Source                 delta.Source
	ObservedAt, OccurredAt time.Time
	Manager, Evidence      string    // Manager is "" if nothing proves who wrote
	Patch                  []byte    // as jsonb spells it; nil if there is none, or if it was not asked for
	Object                 patch.Doc // likewise; only of rows without a patch
}

// A MarkQuery says which marks are read. Zero values do not bound.
type MarkQuery struct {
	Streams        []int32 // nil means all
	Namespaces     []string
	Name           string // a pattern of SQL's LIKE
	ObjectIDs      []int64
	Seqs           []int64   // these and no others; without ObjectIDs
	FromSeq, ToSeq int64     // inclusive; ToSeq is needed
	From, To       time.Time // of occurred_at; To is not included
	Types          []delta.Type
	Manager        string
	Bare           []int32 // streams whose patches are not read; others bring those of Updated and Sync
	Objects        bool    // whether every row brings its patch, or else its object, and Bare counts for nothing
}

// Marks gives the marks of a query in the order of seq. The caller bounds the seqs: all rows between them are read at once. A *MissingDayError is of a day
// that holds some of the seqs.
func (r *Record) Marks(ctx context.Context, q MarkQuery) (found []Mark, err error) {
	kinds, err := typeNumbers(q.Types)
	if err != nil {
		return nil, err
	}
	days, err := r.daysFrom(ctx, r.pool, q.FromSeq, q.ToSeq)
	if err != nil {
		return nil, err
	}
	for i := range days {
		if q.Seqs != nil && !slices.ContainsFunc(q.Seqs, days[i].holds) {
			continue // It is no loss if its partition is gone.
		}
		if err := r.present(ctx, r.pool, &days[i]); err != nil {
			return nil, err
		}
		if found, err = r.marksOf(ctx, &days[i], &q, kinds, found); err != nil {
			return nil, fmt.Errorf("count the deltas of %s: %w", days[i].Day.Format(time.DateOnly), err)
		}
	}
	return found, nil
}

func (r *Record) marksOf(ctx context.Context, d *Day, q *MarkQuery, kinds []int16, found []Mark) ([]Mark, error) {
	sql, args := r.marksQuery(d, q, kinds)
	rows, err := r.pool.Query(ctx, sql, args...)
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

func (r *Record) marksQuery(d *Day, q *MarkQuery, kinds []int16) (string, []any) {
	args := []any{r.cluster.Number, max(q.FromSeq, d.FirstSeq), min(q.ToSeq, d.LastSeq), d.FirstAt, d.LastAt}
	if !q.Objects {
		args = append(args, append([]int32{}, q.Bare...)) // SQL compares nothing with NULL.
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
	where.WriteString(lifeConditions(q, &args))
	return `SELECT d.seq, d.object_id, d.stream, d.type, d.source, d.observed_at, d.occurred_at,
			CASE WHEN d.manager_evidence IN (1, 2) THEN coalesce(d.manager, '') ELSE '' END, coalesce(d.manager_evidence, 0),
			` + textColumns(q.Objects) + `
		FROM ` + source + `
		WHERE d.cluster = $1 AND d.seq BETWEEN $2 AND $3 AND d.observed_at BETWEEN $4 AND $5` + where.String() + ` ORDER BY d.seq`, args
}

// textColumns leaves out what nobody looks at: texts are most of what is sent.
func textColumns(objects bool) string {
	if objects {
		return "d.patch::text, CASE WHEN d.patch IS NULL THEN d.object::text END"
	}
	return "CASE WHEN d.type IN (2, 4) AND d.stream <> ALL ($6::int[]) THEN d.patch::text END, NULL"
}

// lifeConditions bound the objects. Of few, their lives are looked up row by row.
func lifeConditions(q *MarkQuery, args *[]any) string {
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

// Between says between which seqs all deltas are that occurred from one time and before another. Deltas that were recovered
// after a pause, or after an interruption of a stream, have later seqs than earlier events. So last may be behind the end of
// the window: LastBefore gives that. last is below first if there are none. If the partition of an edge's day is gone, the edge
// is that of the day, so that all of the day is within.
func (r *Record) Between(ctx context.Context, from, to time.Time) (first, last int64, err error) {
	err = r.atOnce(ctx, func(tx pgx.Tx) error {
		f := &pointer{record: r, tx: tx}
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

// LastBefore gives the last seq that was observed before a time, 0 if there is none. In a day whose partition is gone, it is the last one of that day.
func (r *Record) LastBefore(ctx context.Context, t time.Time) (seq int64, err error) {
	err = r.atOnce(ctx, func(tx pgx.Tx) error {
		seq, err = (&pointer{record: r, tx: tx}).lastBefore(ctx, t)
		return err
	})
	var missing *MissingDayError
	switch {
	case errors.As(err, &missing):
		return missing.LastSeq, nil
	case err != nil:
		return 0, fmt.Errorf("find the last delta before %s: %w", stamp(t), err)
	}
	return seq, nil
}

// lastBefore is lastBy without the time itself. The record counts microseconds.
func (f *pointer) lastBefore(ctx context.Context, t time.Time) (int64, error) {
	return f.lastBy(ctx, t.Add(-time.Microsecond))
}

// caughtUpUntil is when what occurred within two times has come, at the latest.
func (f *pointer) caughtUpUntil(ctx context.Context, from, to time.Time) (until time.Time, err error) {
	until = to
	late := func(began, ended time.Time) {
		if began.Before(to) && !ended.Before(from) {
			until = times.Later(until, ended.Add(caughtUpWithin))
		}
	}
	pauses, err := f.record.pauses(ctx, f.tx)
	if err != nil {
		return until, err
	}
	for _, p := range pauses {
		late(p.From, p.To)
	}
	gaps, err := f.record.gaps(ctx, f.tx, f.scope)
	if err != nil {
		return until, err
	}
	for i := range gaps {
		if g := &gaps[i]; !g.FromAt.IsZero() && !g.ToAt.IsZero() {
			late(g.FromAt, g.ToAt)
		}
	}
	return until, nil
}

// A ClockStep is where the clock of a recorder stepped, or did not agree with that of the database.
type ClockStep struct {
	AfterSeq             int64
	RecordAt, RecorderAt time.Time // the record's time before it, and what the clock of the host showed
	DatabaseAt           time.Time
	Adopted              bool // the record goes on by the clock of the host
}

// ClockSteps lists the steps of the recorders' clocks, oldest first.
func (r *Record) ClockSteps(ctx context.Context) ([]ClockStep, error) {
	rows, err := r.pool.Query(ctx, `
		SELECT after_seq, record_at, recorder_at, database_at, adopted FROM kuberewind.clock_steps WHERE cluster = $1 ORDER BY epoch, step`, r.cluster.Name)
	if err != nil {
		return nil, fmt.Errorf("read the steps of the clocks: %w", err)
	}
	steps, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s ClockStep, err error) {
		err = row.Scan(&s.AfterSeq, &s.RecordAt, &s.RecorderAt, &s.DatabaseAt, &s.Adopted)
		s.RecordAt, s.RecorderAt, s.DatabaseAt = s.RecordAt.UTC(), s.RecorderAt.UTC(), s.DatabaseAt.UTC()
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the steps of the clocks: %w", err)
	}
	return steps, nil
}

package postgres

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/internal/fold"
	"github.com/kuberewind/kuberewind/patch"
)

// A loader folds the living objects of a stream from the record.
//
// All rows that the last version of an object needs are in one partition, because the first row of a life in a day is a
// keyframe (I8). So the loader reads the days from the newest to the oldest, one partition per query, and does not
// search again for an object that it found. It finds objects that changed lately at once. The daily sweep gives
// unchanged objects a row in each day, too. A day without a sweep costs one index lookup for each older object.
type loader struct {
	streams *streams
	stream  *Stream
	pending []pendingLife // by object_id
	packed  []byte
}

type pendingLife struct {
	objectID        int64
	namespace, name string
	uid             string
}

// loadChunk is how many objects one query requests: the server sorts their rows.
const loadChunk = 500

func (r *streams) loadKnown(ctx context.Context, st *Stream) error {
	l := &loader{streams: r, stream: st}
	if err := l.lives(ctx); err != nil {
		return fmt.Errorf("load its living objects: %w", err)
	}
	days, err := l.days(ctx)
	if err != nil {
		return fmt.Errorf("load the days of the record: %w", err)
	}
	for _, day := range days {
		if err := l.day(ctx, day); err != nil {
			return fmt.Errorf("fold its objects of %s: %w", day.lastAt.UTC().Format(time.DateOnly), err)
		}
	}
	for i := range l.pending {
		l.unfolded(&l.pending[i], &folding{}, fold.ErrNoKeyframe)
	}
	return nil
}

func (l *loader) lives(ctx context.Context) error {
	rows, err := l.streams.tenure.pool.Query(ctx, `
		SELECT l.object_id, l.namespace, l.name, l.uid FROM kuberewind.living a JOIN kuberewind.lives l USING (cluster, object_id)
		WHERE a.cluster = $1 AND a.stream = $2 ORDER BY a.object_id`, l.streams.tenure.cluster, l.stream.id)
	if err != nil {
		return err
	}
	l.pending, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p pendingLife, err error) {
		return p, row.Scan(&p.objectID, &p.namespace, &p.name, &p.uid)
	})
	return err
}

type recordedDay struct {
	lastSeq         int64
	firstAt, lastAt time.Time
}

func (l *loader) days(ctx context.Context) ([]recordedDay, error) {
	if len(l.pending) == 0 {
		return nil, nil
	}
	rows, err := l.streams.tenure.pool.Query(ctx, `
		SELECT last_seq, first_at, last_at FROM kuberewind.days
		WHERE cluster = $1 AND last_seq >= $2 ORDER BY day DESC`, l.streams.tenure.cluster, l.pending[0].objectID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d recordedDay, err error) {
		return d, row.Scan(&d.lastSeq, &d.firstAt, &d.lastAt)
	})
}

// day finds pending objects in one partition. It skips objects that were born after that day.
func (l *loader) day(ctx context.Context, day recordedDay) error {
	var missing []pendingLife
	for chunk := range slices.Chunk(l.pending, loadChunk) {
		if chunk[0].objectID > day.lastSeq {
			missing = append(missing, chunk...)
			continue
		}
		found, err := l.chunk(ctx, chunk, day)
		if err != nil {
			return err
		}
		for i := range chunk {
			if !found[chunk[i].objectID] {
				missing = append(missing, chunk[i])
			}
		}
	}
	l.pending = missing
	return nil
}

// foldQuery selects, for each object, the last keyframe within the bounds and the rows after it.
//
// Today's partition grows faster than the server analyses it. The planner expects few rows for seqs that are not in its
// statistics. So the query gives the planner no choice. MATERIALIZED and OFFSET 0 keep the order. Seq + 0 prevents the
// use of the index by seq, which would read the rows of every other object.
const foldQuery = `
	WITH starts AS MATERIALIZED (
		SELECT o.object_id, keyframe.seq
		FROM unnest($2::bigint[]) AS o (object_id)
		CROSS JOIN LATERAL (
			SELECT seq FROM kuberewind.deltas_data
			WHERE cluster = $1 AND object_id = o.object_id AND object IS NOT NULL AND observed_at BETWEEN $3 AND $4
			ORDER BY seq DESC LIMIT 1
		) AS keyframe
	)
	SELECT d.object_id, d.seq, d.observed_at, d.rv, d.digest, d.patch::text, d.object::text, d.exact
	FROM starts o
	CROSS JOIN LATERAL (
		SELECT * FROM kuberewind.deltas_data
		WHERE cluster = $1 AND object_id = o.object_id AND seq + 0 >= o.seq AND observed_at BETWEEN $3 AND $4
		OFFSET 0
	) AS d
	ORDER BY d.object_id, d.seq`

// A folding is the state of one object while its rows are folded.
type folding struct {
	objectID, seq int64
	observed      time.Time
	rv            string
	digest        []byte
	doc           patch.Doc
	since         uint8
	unsafe        bool
	err           error
}

func (l *loader) chunk(ctx context.Context, chunk []pendingLife, day recordedDay) (found map[int64]bool, err error) {
	ids := make([]int64, len(chunk))
	for i := range chunk {
		ids[i] = chunk[i].objectID
	}
	rows, err := l.streams.tenure.pool.Query(ctx, foldQuery, l.streams.tenure.cluster, ids, day.firstAt, day.lastAt)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found = make(map[int64]bool, len(chunk))
	var f folding
	for rows.Next() {
		var next folding
		var change, object, exact pgtype.DriverBytes // valid until the next row
		if err := rows.Scan(&next.objectID, &next.seq, &next.observed, &next.rv, &next.digest, &change, &object, &exact); err != nil {
			return nil, err
		}
		if next.objectID != f.objectID {
			l.finish(chunk, &f)
			f = folding{objectID: next.objectID}
			found[next.objectID] = true
		}
		f.seq, f.observed, f.rv, f.digest = next.seq, next.observed, next.rv, next.digest
		f.add(fold.Row{RV: f.rv, Patch: change, Object: object, Exact: exact})
	}
	l.finish(chunk, &f)
	return found, rows.Err()
}

// add folds one row. After an error, the next keyframe repairs the object.
func (f *folding) add(row fold.Row) {
	whole := row.Object != nil || row.Exact != nil
	if f.err != nil && !whole {
		return
	}
	f.doc, f.err = row.Onto(f.doc)
	switch {
	case whole:
		f.since, f.unsafe = 0, row.Exact != nil
	case row.Patch != nil:
		f.since++
	}
}

// finish makes the folded object known.
func (l *loader) finish(chunk []pendingLife, f *folding) {
	if f.objectID == 0 {
		return
	}
	i, ok := slices.BinarySearchFunc(chunk, f.objectID, func(p pendingLife, id int64) int { return cmp.Compare(p.objectID, id) })
	if !ok {
		return
	}
	p := &chunk[i]
	digest := patch.Digest(f.doc)
	// I6: the record must fold to the version that was served.
	if f.err != nil || !bytes.Equal(digest[:], f.digest) {
		l.unfolded(p, f, f.err)
		return
	}
	doc, err := l.redacted(f.doc)
	if err != nil {
		l.unredacted(p, f, err)
		return
	}
	e := newEntry(p.uid, f.rv)
	e.id, e.digest, e.day, e.since, e.unsafe = p.objectID, digest, dayOf(f.observed.UnixMicro()), f.since, f.unsafe
	if !bytes.Equal(doc, f.doc) {
		e.digest, e.day = patch.Digest(doc), noDay
	}
	l.packed = s2.Encode(l.packed[:cap(l.packed)], doc)
	e.doc = bytes.Clone(l.packed)
	l.stream.known.put(p.namespace, p.servedName(f.doc), &e)
}

// redacted returns a text of the record under the present rules. I9: the sink does not write again a text that was made
// under fewer rules.
func (l *loader) redacted(doc patch.Doc) (patch.Doc, error) {
	if l.stream.spec.Redact == nil {
		return doc, nil
	}
	return l.stream.spec.Redact(doc)
}

// servedName returns the name that the server uses. Lives may hold it cut; then the object's text has it whole.
func (p *pendingLife) servedName(doc patch.Doc) string {
	value, _ := patch.Get(doc, "/metadata/name")
	if name, ok := patch.Unquote(value); ok && lifeName(string(name)) == p.name {
		return string(name)
	}
	return p.name
}

// unfolded makes an object known by its identity only: the sink stores its next version whole.
func (l *loader) unfolded(p *pendingLife, f *folding, err error) {
	l.logOf(p, f).Error("an object on record does not fold to the version that was served; its next version is stored whole", "error", err)
	l.identity(p, f, err, false)
}

// unredacted does the same for an object whose text the present rules cannot be applied to. I9: the sink does not write
// that text again.
func (l *loader) unredacted(p *pendingLife, f *folding, err error) {
	err = fmt.Errorf("redact the text on record: %w", err)
	l.logOf(p, f).Error("an object on record cannot be redacted under the present rules; no checkpoint is made until its next version, which is stored whole", "error", err)
	l.identity(p, f, err, true)
}

func (l *loader) logOf(p *pendingLife, f *folding) *slog.Logger {
	return l.streams.log.With("stream", l.stream.id, "object", joinKey(p.namespace, p.name), "object_id", p.objectID, "seq", f.seq)
}

func (l *loader) identity(p *pendingLife, f *folding, err error, inClear bool) {
	e := newEntry(p.uid, f.rv)
	e.id, e.day, e.clear = p.objectID, noDay, inClear
	l.stream.known.put(p.namespace, p.name, &e)
	if l.streams.unfolded != nil {
		l.streams.unfolded(Mismatch{Stream: l.stream.id, Seq: f.seq, Key: joinKey(p.namespace, p.name), Err: err})
	}
}

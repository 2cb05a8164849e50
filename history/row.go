package history

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// A Row is a delta as the tables hold it. Type, Source and Evidence are the numbers of the tables. The texts are not
// parsed.
type Row struct {
	Seq, ObjectID          int64
	Stream                 int32
	ObservedAt, OccurredAt time.Time
	Type, Source           int16
	RV, Version            string
	Writer                 RowWriter
	Digest                 []byte
	Patch, Object, Exact   []byte // nil is NULL
	Life                   RowLife
}

// A RowWriter is the writer of a Row. An empty text and the evidence 0 stand for NULL.
type RowWriter struct {
	Manager, Subresource string
	Evidence             int16
	Hint                 string
}

// A RowLife names the life of a Row. Its texts are empty if the life is not on record.
type RowLife struct{ Namespace, Name, UID string }

const rowColumns = `d.seq, d.object_id, d.stream, d.observed_at, d.occurred_at, d.type, d.source, d.rv, d.version,
	coalesce(d.manager, ''), coalesce(d.subresource, ''), coalesce(d.manager_evidence, 0), coalesce(d.manager_hint, ''), d.digest, d.patch::text, d.object::text, d.exact`

const lifeColumns = `coalesce(l.namespace, ''), coalesce(l.name, ''), coalesce(l.uid, '')`

const joinLives = ` LEFT JOIN kuberewind.record_lives l ON l.cluster = d.cluster AND l.object_id = d.object_id`

func (w *Row) scan(rows pgx.Rows) error {
	return rows.Scan(&w.Seq, &w.ObjectID, &w.Stream, &w.ObservedAt, &w.OccurredAt, &w.Type, &w.Source, &w.RV, &w.Version,
		&w.Writer.Manager, &w.Writer.Subresource, &w.Writer.Evidence, &w.Writer.Hint, &w.Digest, &w.Patch, &w.Object, &w.Exact,
		&w.Life.Namespace, &w.Life.Name, &w.Life.UID)
}

// size estimates how much memory the row takes.
func (w *Row) size() int { return 300 + len(w.Patch) + len(w.Object) + len(w.Exact) }

// Whole reports whether the row is a keyframe.
func (w *Row) Whole() bool { return w.Object != nil || w.Exact != nil }

// Keyframe returns the exact object of a keyframe.
func (w *Row) Keyframe() (patch.Doc, error) {
	if w.Exact != nil {
		return patch.Canonical(w.Exact)
	}
	return patch.Canonical(w.Object)
}

// delta converts the row. If a text is not JSON, it returns an error together with the rest of the delta.
func (w *Row) delta(stream *Stream) (d Delta, err error) {
	d = Delta{
		Seq: w.Seq, ObjectID: w.ObjectID, Stream: stream, Namespace: w.Life.Namespace, Name: w.Life.Name, UID: w.Life.UID,
		Type: delta.TypeOf(w.Type), Source: delta.SourceOf(w.Source), ObservedAt: w.ObservedAt.UTC(), OccurredAt: w.OccurredAt.UTC(),
		RV: w.RV, Version: w.Version, Evidence: evidenceName(w.Writer.Evidence), ManagerHint: w.Writer.Hint,
	}
	if d.Evidence != EvidenceNone {
		d.Manager, d.Subresource = w.Writer.Manager, w.Writer.Subresource
	}
	copy(d.Digest[:], w.Digest)
	if w.Patch != nil {
		d.Patch, err = patch.Canonical(w.Patch)
	}
	if w.Whole() && err == nil {
		d.Object, err = w.Keyframe()
	}
	return d, err
}

func (w *Row) damaged(stream *Stream, root int64, err error) *DamagedError {
	return &DamagedError{Seq: w.Seq, ObjectID: w.ObjectID, Stream: stream, Namespace: w.Life.Namespace, Name: w.Life.Name, Root: root, Err: err}
}

// pgText is a text that is valid until the next row is read.
type pgText = pgtype.DriverBytes

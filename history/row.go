package history

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// A row is one of record_deltas, with the identity of its object.
type row struct {
	seq, objectID        int64
	stream               int32
	observed, occurred   time.Time
	kind, source         int16
	rv, version          string
	manager, subresource string
	evidence             int16
	hint                 string
	digest               []byte
	patch, object, exact []byte
	namespace, name, uid string
}

const rowColumns = `d.seq, d.object_id, d.stream, d.observed_at, d.occurred_at, d.type, d.source, d.rv, d.version,
	coalesce(d.manager, ''), coalesce(d.subresource, ''), coalesce(d.manager_evidence, 0), coalesce(d.manager_hint, ''), d.digest, d.patch::text, d.object::text, d.exact`

const lifeColumns = `coalesce(l.namespace, ''), coalesce(l.name, ''), coalesce(l.uid, '')`

const joinLives = ` LEFT JOIN kuberewind.record_lives l ON l.cluster = d.cluster AND l.object_id = d.object_id`

func (w *row) scan(rows pgx.Rows) error {
	return rows.Scan(&w.seq, &w.objectID, &w.stream, &w.observed, &w.occurred, &w.kind, &w.source, &w.rv, &w.version,
		&w.manager, &w.subresource, &w.evidence, &w.hint, &w.digest, &w.patch, &w.object, &w.exact, &w.namespace, &w.name, &w.uid)
}

// size is about how much memory the row takes.
func (w *row) size() int { return 300 + len(w.patch) + len(w.object) + len(w.exact) }

// whole reports whether the row is a keyframe.
func (w *row) whole() bool { return w.object != nil || w.exact != nil }

// keyframe gives the exact object of a keyframe.
func (w *row) keyframe() (patch.Doc, error) {
	if w.exact != nil {
		return patch.Canonical(w.exact)
	}
	return patch.Canonical(w.object)
}

// delta gives the row to a caller. An error says that something in it is no JSON; the rest of the delta comes with it.
func (w *row) delta(stream *Stream) (d Delta, err error) {
	d = Delta{
		Seq: w.seq, ObjectID: w.objectID, Stream: stream, Namespace: w.namespace, Name: w.name, UID: w.uid,
		Type: delta.TypeOf(w.kind), Source: delta.SourceOf(w.source), ObservedAt: w.observed.UTC(), OccurredAt: w.occurred.UTC(),
		RV: w.rv, Version: w.version, Evidence: evidenceName(w.evidence), ManagerHint: w.hint,
	}
	if d.Evidence != EvidenceNone {
		d.Manager, d.Subresource = w.manager, w.subresource
	}
	copy(d.Digest[:], w.digest)
	if w.patch != nil {
		d.Patch, err = patch.Canonical(w.patch)
	}
	if w.whole() && err == nil {
		d.Object, err = w.keyframe()
	}
	return d, err
}

func (w *row) damaged(stream *Stream, root int64, err error) *DamagedError {
	return &DamagedError{Seq: w.seq, ObjectID: w.objectID, Stream: stream, Namespace: w.namespace, Name: w.name, Root: root, Err: err}
}

// pgText is text that is valid until the next row is read.
type pgText = pgtype.DriverBytes

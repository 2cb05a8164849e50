package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// A sweep makes a day readable without earlier days (I8). Each living object without a row in that day gets a Sync
// keyframe with the source resync. The owner of the sink sends these keyframes. The encoder skips those that are not
// needed, and decides when the sweep is complete.

// NeedsKeyframe reports whether the object has no row in the UTC day of a time, and can be stored again.
func (k KnownObject) NeedsKeyframe(at time.Time) bool {
	return k.entry.doc != nil && k.entry.day < dayOf(at.UnixMicro())
}

// Size returns the size of its canonical text, or 0 if the text on record could not be folded or redacted.
func (k KnownObject) Size() int {
	n, err := s2.DecodedLen(k.entry.doc)
	if err != nil {
		return 0
	}
	return n
}

// Version returns the API version in which it was served.
func (k KnownObject) Version() string { return apiVersion(k.Doc()) }

// Progress is the progress of a sweep.
type Progress struct {
	Waiting  int // objects that have no row in the day yet
	Unfolded int // of these, objects that must be served again first, because their text on record could not be folded or redacted
}

// Unswept counts the objects of the open streams that have no row in the UTC day of a time.
func (s *Sink) Unswept(at time.Time) (p Progress) {
	day := dayOf(at.UnixMicro())
	for st := range s.streams.all() {
		waiting, unfolded := st.known.before(day)
		p.Waiting, p.Unfolded = p.Waiting+waiting, p.Unfolded+unfolded
	}
	return p
}

// Swept reports whether the sweep of the UTC day of a time is complete, and the record holds no text that must be
// redacted again.
func (s *Sink) Swept(at time.Time) bool {
	return s.sweeps.swept.Load() >= dayOf(at.UnixMicro()) && s.Rewritten() == 0
}

// Rewritten counts the objects of the open streams that were redacted again when they were loaded, and have no row
// since. The record shows them as they were under fewer rules. A sweep stores them, even on a day that was swept
// before.
func (s *Sink) Rewritten() (objects int) {
	for st := range s.streams.all() {
		objects += st.known.countRewritten()
	}
	return objects
}

// Rewriting reports whether the committed record shows objects of the open streams as they were under fewer rules.
func (s *Sink) Rewriting() bool {
	return s.Rewritten() > 0 || s.committed.Load() < s.encoder.drafts.rewrote.Load()
}

// CompleteSweep requests that the encoder records the sweep of the UTC day of a time as complete. If it is complete, the
// encoder does so with its next batch. The streams that have living objects on record must be open; see Dormant.
func (s *Sink) CompleteSweep(at time.Time) { s.sweeps.requested.Store(dayOf(at.UnixMicro())) }

// sweeps holds the day whose sweep may be complete, and the day that was swept last.
type sweeps struct {
	requested atomic.Int32 // day whose sweep may be complete, noDay for none
	swept     atomic.Int32 // day whose sweep was complete last
}

// complete serves the request of CompleteSweep. The batch is observed at a time.
func (s *sweeps) complete(b *Batch, observed int64, streams *streams) {
	day := s.requested.Swap(noDay)
	if day == noDay || day != dayOf(observed) || day <= s.swept.Load() {
		return
	}
	objects := int64(0)
	for st := range streams.all() {
		if waiting, _ := st.known.before(day); waiting > 0 {
			return
		}
		objects += int64(st.known.Len())
	}
	b.sweep, b.changed = &sweepRow{day: day, objects: objects}, true
	s.swept.Store(day)
}

// A sweepRow is a row of sweeps.
type sweepRow struct {
	day     int32
	objects int64
}

// load reads which day was swept last.
func (s *sweeps) load(ctx context.Context, t *tenure) error {
	s.requested.Store(noDay)
	s.swept.Store(noDay)
	var day *time.Time
	err := t.pool.QueryRow(ctx, `SELECT max(day) FROM kuberewind.sweeps WHERE cluster = $1`, t.cluster).Scan(&day)
	if day != nil {
		s.swept.Store(dayOf(day.UnixMicro()))
	}
	return err
}

// Dormant returns the streams that have living objects on record and are not open. The server no longer serves their
// resource, or the rules now exclude it. The sweep must free their objects from earlier days, too.
func (s *Sink) Dormant(ctx context.Context) ([]StreamSpec, error) {
	rows, err := s.tenure.pool.Query(ctx, `
		SELECT api_group, resource, scope, version, kind, namespaced, filter FROM kuberewind.streams s
		WHERE cluster = $1 AND EXISTS (SELECT FROM kuberewind.living l WHERE l.cluster = s.cluster AND l.stream = s.stream)`,
		s.tenure.cluster)
	if err != nil {
		return nil, fmt.Errorf("find the streams that are not followed: %w", explain(err))
	}
	specs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (spec StreamSpec, err error) {
		return spec, row.Scan(&spec.Group, &spec.Resource, &spec.Scope, &spec.Version, &spec.Kind, &spec.Namespaced, &spec.Filter)
	})
	if err != nil {
		return nil, fmt.Errorf("find the streams that are not followed: %w", explain(err))
	}
	return slices.DeleteFunc(specs, func(spec StreamSpec) bool { return s.streams.opened(spec.key()) != nil }), nil
}

// before counts the objects whose last row is from before a day.
func (k *Known) before(day int32) (waiting, unfolded int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, objects := range k.objects {
		for _, e := range objects {
			if e.day >= day {
				continue
			}
			waiting++
			if e.doc == nil {
				unfolded++
			}
		}
	}
	return waiting, unfolded
}

// due reports whether a keyframe of a known object is needed, and shows the version on record. An object that did not
// change takes one row a day. An object that changed after the keyframe was sent already has a row.
func (v *version) due(observed int64) bool {
	return v.known != nil && v.known.isUID(v.uid) && v.known.rvText() == v.rv && v.known.digest == v.digest && v.known.day < dayOf(observed)
}

// addKeyframe stores the known version of v again, before a row that ends its life, if that row would be its only row
// in the day. I8: the first row of a life in a day is a keyframe.
func (ds *drafts) addKeyframe(b *Batch, st *Stream, v *version) error {
	if v.known.day >= dayOf(b.after.observed) {
		return nil
	}
	if v.pending != nil {
		ds.finish(b) // The day has begun with this batch, and the text is needed.
		ds.find(st, v)
	}
	if v.known.doc == nil {
		return nil
	}
	object := KnownObject{namespace: v.namespace, name: v.name, entry: v.known}
	item := Item{Stream: st.id, Kind: Delta, Type: delta.Sync, Source: delta.SourceResync, Object: object, Version: object.Version()}
	w := version{item: &item, kind: delta.NumberSync, source: delta.NumberResync, known: v.known}
	if err := w.read(object); err != nil {
		return err
	}
	ds.record(b, st, &w)
	ds.find(st, v)
	return nil
}

// apiVersion returns the version of an object without its group.
func apiVersion(doc patch.Doc) string {
	value, _ := patch.Get(doc, "/apiVersion")
	text, _ := patch.Unquote(value)
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == '/' {
			return string(text[i+1:])
		}
	}
	return string(text)
}

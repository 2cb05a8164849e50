package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/chain"
	"github.com/kuberewind/kuberewind/patch"
)

// StreamSpec says which list-watch a stream is. Group, Resource and Scope are its identity.
type StreamSpec struct {
	Group      string
	Resource   string
	Scope      string // namespace, "" for all
	Version    string // served API version that is asked for
	Kind       string
	Namespaced bool
	Filter     string // "" for none; see Stream.Filter

	// Redact brings a text of the record under the present rules of what may be stored (I9). Nil: it stays as it is.
	Redact func(patch.Doc) (patch.Doc, error)

	// Schema is what decides the content of the objects of a new stream at a resource version; see Stream.Schema.
	Schema string

	// StartRV is the resource version from which a new stream is complete without a list, because nothing of it is older. It
	// is that of the CRD whose instances the stream follows. It means nothing for a stream that was recorded before.
	StartRV string
}

type streamKey struct{ group, resource, scope string }

func (s *StreamSpec) key() streamKey { return streamKey{s.Group, s.Resource, s.Scope} }

// A Stream is one list-watch in the record.
type Stream struct {
	id    int32
	known Known

	// What belongs to the encoder.
	work   streamState
	empty  bool
	buried buried
	dirty  bool

	mu        sync.RWMutex // protects what follows
	spec      StreamSpec
	published streamState
	excluded  map[types.UID]struct{}
}

// ID is the number by which items name the stream.
func (st *Stream) ID() int32 { return st.id }

func (st *Stream) identity() streamKey {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return st.spec.key()
}

// Known is the view of its living objects.
func (st *Stream) Known() *Known { return &st.known }

// Position is the resource version at which a watch can go on, "" if the stream has to be listed.
func (st *Stream) Position() string {
	if w := st.state(); w.synced {
		return w.at.Complete
	}
	return ""
}

// Newest is the newest resource version on record, "" if there is none. It is later than Position while more deletes may share it.
func (st *Stream) Newest() string { return st.state().at.Newest }

// Unfinished is why there was a list after the first that was not recorded to its end, "" if there is none.
func (st *Stream) Unfinished() (cause delta.Cause) {
	if w := st.state(); !w.synced && w.at.Complete != "" && w.gap != nil {
		return w.gap.Cause
	}
	return ""
}

// OpenGap is the cause of the gap that is open, "" if there is none.
func (st *Stream) OpenGap() (cause delta.Cause) {
	if w := st.state(); w.gap != nil {
		return w.gap.Cause
	}
	return ""
}

// Empty reports whether, when it was opened, the stream was complete and had never had an object. Such a stream began with a
// StartRV, and nothing has come of it yet.
func (st *Stream) Empty() bool { return st.empty }

// Filter is that of the last list that was recorded. Before the first list, it is that of the specification with which the
// stream was registered. If the stream is followed with another filter now, it has to be listed. The new filter counts from
// the Replaced of that list.
func (st *Stream) Filter() string { return st.state().filter }

// Schema is that under which all living objects were last compared with what the server serves, "" if that is not known. See Compared.
func (st *Stream) Schema() string { return st.state().schema }

// Excluded reports whether a label filter leaves out the object with this UID, as decided when it was first seen.
func (st *Stream) Excluded(uid types.UID) bool {
	st.mu.RLock()
	defer st.mu.RUnlock()
	_, excluded := st.excluded[uid]
	return excluded
}

func (st *Stream) state() streamState {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return st.published
}

// publish shows readers the encoder's state.
func (st *Stream) publish() streamState {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.published = st.work
	if g := st.work.gap; g != nil {
		shown := *g
		st.published.gap = &shown
	}
	return st.work
}

// setExcluded reports whether anything changed.
func (st *Stream) setExcluded(uid types.UID, excluded bool) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if _, was := st.excluded[uid]; was == excluded {
		return false
	}
	if !excluded {
		delete(st.excluded, uid)
		return true
	}
	if st.excluded == nil {
		st.excluded = make(map[types.UID]struct{})
	}
	st.excluded[uid] = struct{}{}
	return true
}

// Stream opens a stream: it registers it, or finds it and folds its living objects from the record. Folding takes memory for
// one object at a time beyond what is kept. A stream that is open already is returned as it is, with the new version and kind.
// The error is ErrFenced if another writer holds the cluster.
func (s *Sink) Stream(ctx context.Context, spec StreamSpec) (*Stream, error) {
	st, err := s.openStream(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("open stream %s/%s of scope %q: %w", spec.Group, spec.Resource, spec.Scope, explain(err))
	}
	return st, nil
}

func (s *Sink) openStream(ctx context.Context, spec StreamSpec) (*Stream, error) {
	if st := s.openedStream(spec.key()); st != nil {
		if err := s.respecify(ctx, st.id, &spec); err != nil {
			return nil, err
		}
		st.mu.Lock()
		defer st.mu.Unlock()
		st.spec = spec
		return st, nil
	}
	st := &Stream{spec: spec}
	err := s.findStream(ctx, st)
	if errors.Is(err, pgx.ErrNoRows) {
		err = s.registerStream(ctx, st)
	}
	if err != nil {
		return nil, err
	}
	st.publish()
	s.mu.Lock()
	defer s.mu.Unlock()
	if opened := s.byKey[spec.key()]; opened != nil {
		return opened, nil // by another goroutine, meanwhile
	}
	s.streams[st.id], s.byKey[spec.key()] = st, st
	return st, nil
}

// Position is the resource version at which the stream of a resource in all namespaces can go on, whether it is open or not.
// It is "" if the stream was never recorded as a whole.
func (s *Sink) Position(ctx context.Context, group, resource string) (string, error) {
	var position *string
	err := s.pool.QueryRow(ctx, `
		SELECT position FROM kuberewind.streams WHERE cluster = $1 AND api_group = $2 AND resource = $3 AND scope = ''`,
		s.info.Cluster, group, resource).Scan(&position)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("position of stream %s/%s: %w", group, resource, explain(err))
	}
	return textOf(position), nil
}

// Registered reports whether a stream of a resource in all namespaces is on record, be it with nothing.
func (s *Sink) Registered(ctx context.Context, group, resource string) (registered bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kuberewind.streams WHERE cluster = $1 AND api_group = $2 AND resource = $3 AND scope = '')`,
		s.info.Cluster, group, resource).Scan(&registered)
	if err != nil {
		return false, fmt.Errorf("look for stream %s/%s: %w", group, resource, explain(err))
	}
	return registered, nil
}

func (s *Sink) openedStream(key streamKey) *Stream {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byKey[key]
}

func (s *Sink) stream(id int32) *Stream {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.streams[id]
}

// respecify stores version and kind, which are attributes of a stream and not its identity.
func (s *Sink) respecify(ctx context.Context, id int32, spec *StreamSpec) error {
	tag, err := s.pool.Exec(ctx, `
		UPDATE kuberewind.streams s SET version = $3, kind = $4, namespaced = $5
		FROM (SELECT cluster FROM kuberewind.heads WHERE cluster = $1 AND epoch = $6 FOR SHARE) h
		WHERE s.cluster = h.cluster AND s.stream = $2`,
		s.info.Cluster, id, spec.Version, spec.Kind, spec.Namespaced, s.info.Epoch)
	if err == nil && tag.RowsAffected() == 0 {
		err = s.fenced(ctx)
	}
	return err
}

func (s *Sink) findStream(ctx context.Context, st *Stream) error {
	var position, lastRV *string
	var positionedAt, stateSince time.Time
	w := &st.work
	err := s.pool.QueryRow(ctx, `
		SELECT stream, position, last_rv, last_seq, synced, bookmarks, positioned_at, state, state_since, detail, filter, schema, synced AND last_seq = 0
			AND NOT EXISTS (SELECT FROM kuberewind.gaps_data g WHERE g.cluster = s.cluster AND g.stream = s.stream)
		FROM kuberewind.streams s WHERE cluster = $1 AND api_group = $2 AND resource = $3 AND scope = $4`,
		s.info.Cluster, st.spec.Group, st.spec.Resource, st.spec.Scope,
	).Scan(&st.id, &position, &lastRV, &w.lastSeq, &w.synced, &w.bookmarks, &positionedAt, &w.state, &stateSince, &w.detail, &w.filter, &w.schema, &st.empty)
	if err != nil {
		return err
	}
	w.at = delta.Position{Complete: textOf(position), Newest: textOf(lastRV)}
	w.positionedAt, w.stateSince = positionedAt.UnixMicro(), stateSince.UnixMicro()
	if err := s.respecify(ctx, st.id, &st.spec); err != nil {
		return err
	}
	if err := s.loadGap(ctx, st); err != nil {
		return err
	}
	if err := s.loadExcluded(ctx, st); err != nil {
		return err
	}
	return s.loadKnown(ctx, st)
}

// registerStream gives the stream a number. It registers one at a time, because the number is the highest plus one. It
// registers none while another writer takes over: that writer would find it only when it registers the same stream.
func (s *Sink) registerStream(ctx context.Context, st *Stream) error {
	s.registering.Lock()
	defer s.registering.Unlock()
	now := s.now()
	w := &st.work
	*w = streamState{state: delta.StateListing, stateSince: now.UnixMicro(), positionedAt: now.UnixMicro(), filter: st.spec.Filter, schema: clean(st.spec.Schema)}
	if st.spec.StartRV != "" {
		w.state, w.synced, w.at = delta.StateLive, true, delta.At(st.spec.StartRV)
		st.empty = true
	}
	err := s.pool.QueryRow(ctx, `
		INSERT INTO kuberewind.streams (cluster, stream, api_group, resource, scope, version, kind, namespaced, started_at,
			state, state_since, detail, filter, position, last_rv, last_seq, synced, bookmarks, positioned_at, schema)
		SELECT h.cluster, numbered.next, $3, $4, $5, $6, $7, $8, $9, $10, $9, '', $11, $12, $12, 0, $13, false, $9, $14
		FROM (SELECT cluster FROM kuberewind.heads WHERE cluster = $1 AND epoch = $2 FOR SHARE) h
		CROSS JOIN (SELECT coalesce(max(o.stream), 0) + 1 AS next FROM kuberewind.streams o WHERE o.cluster = $1) numbered
		RETURNING stream`,
		s.info.Cluster, s.info.Epoch, st.spec.Group, st.spec.Resource, st.spec.Scope, st.spec.Version, st.spec.Kind, st.spec.Namespaced, now,
		w.state, w.filter, nullable(w.at.Complete), w.synced, w.schema,
	).Scan(&st.id)
	if errors.Is(err, pgx.ErrNoRows) {
		return s.fenced(ctx)
	}
	return err
}

// loadGap finds the gap that a recorder before this one left open.
func (s *Sink) loadGap(ctx context.Context, st *Stream) error {
	g := gap{Gap: chain.Gap{Stream: st.id}}
	var fromAt *time.Time
	err := s.pool.QueryRow(ctx, `
		SELECT gap, cause, detail, from_rv, from_at, opened_batch FROM kuberewind.gaps_data
		WHERE cluster = $1 AND stream = $2 AND closed_batch IS NULL ORDER BY gap DESC LIMIT 1`, s.info.Cluster, st.id,
	).Scan(&g.Number, &g.Cause, &g.Detail, &g.FromRV, &fromAt, &g.opened)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	g.FromAt = microsOf(fromAt)
	st.work.gap, st.work.inherited = &g, true
	return nil
}

func (s *Sink) loadExcluded(ctx context.Context, st *Stream) error {
	rows, err := s.pool.Query(ctx, `SELECT uid FROM kuberewind.exclusions WHERE cluster = $1 AND stream = $2`, s.info.Cluster, st.id)
	if err != nil {
		return err
	}
	uids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, uid := range uids {
		st.setExcluded(types.UID(uid), true)
	}
	return nil
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func microsOf(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	n := t.UnixMicro()
	return &n
}

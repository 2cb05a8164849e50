package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Stream is one list-watch: of a resource in the whole cluster, or in one namespace.
type Stream struct {
	ID         int32
	Group      string // "" for the core group
	Resource   string // plural
	Version    string // version of the recorder's last request
	Kind       string
	Scope      string // namespace of the list-watch, "" for all
	Namespaced bool
	StartedAt  time.Time // when it was first recorded
	State      StreamState
	Filter     string // "" for none
	Position   string // resource version from which a watch can continue; "" before the first list is complete
	LastRV     string // resource version up to which the stream is recorded
	LastSeq    int64  // of the stream's last delta, 0 before the first
	Synced     bool   // whether a list is complete
}

// A StreamState is the state of a stream.
type StreamState struct {
	Name   string // listing, live or interrupted
	Since  time.Time
	Detail string // what the server or the recorder says about it
}

// GroupResource returns the group and resource of the stream.
func (s *Stream) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: s.Group, Resource: s.Resource}
}

// String returns the group and resource as in "deployments.apps", with the namespace if there is one.
func (s *Stream) String() string {
	name := s.GroupResource().String()
	if s.Scope != "" {
		name += " in namespace " + s.Scope
	}
	return name
}

// errNoStream says that a delta or a life names a stream that is not on record.
var errNoStream = errors.New("the record has no such stream")

// streamsFresh is how long Streams may answer from memory.
const streamsFresh = time.Second

type streamSet struct {
	all  []*Stream
	byID map[int32]*Stream
	at   time.Time
}

// Streams lists the streams of the cluster, by group, resource and scope. The answer may be a second old.
func (r *Record) Streams(ctx context.Context) ([]Stream, error) {
	set, err := r.view.streamSet(ctx)
	if err != nil {
		return nil, err
	}
	return set.copies(), nil
}

// A streamMemory remembers the streams that were read last.
type streamMemory struct {
	mu  sync.Mutex // protects set
	set streamSet
}

func (m *streamMemory) last() streamSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.set
}

func (m *streamMemory) keep(set streamSet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set = set
}

func (v *view) streamSet(ctx context.Context) (streamSet, error) {
	set := v.streams.last()
	if set.byID != nil && time.Since(set.at) < streamsFresh {
		return set, nil
	}
	if err := v.refreshStreams(ctx); err != nil {
		return set, err
	}
	return v.streams.last(), nil
}

// refreshStreams reads the streams again and remembers them.
func (v *view) refreshStreams(ctx context.Context) error {
	set, err := v.readStreams(ctx)
	if err != nil {
		return fmt.Errorf("read the streams of the record: %w", err)
	}
	v.streams.keep(set)
	return nil
}

func (s streamSet) copies() []Stream {
	all := make([]Stream, len(s.all))
	for i, stream := range s.all {
		all[i] = *stream
	}
	return all
}

// clusterScoped reports whether the objects of all these streams have no namespace.
func (s streamSet) clusterScoped(streams []int32) bool {
	return len(streams) > 0 && !slices.ContainsFunc(streams, func(id int32) bool { return s.byID[id] == nil || s.byID[id].Namespaced })
}

// events returns the streams of Events, in either API group.
func (s streamSet) events() (ids []int32) {
	for _, stream := range s.all {
		if stream.Resource == "events" && (stream.Group == "" || stream.Group == "events.k8s.io") {
			ids = append(ids, stream.ID)
		}
	}
	return ids
}

func (v *view) readStreams(ctx context.Context) (set streamSet, err error) {
	rows, err := v.db.Query(ctx, `
		SELECT stream, api_group, resource, version, kind, scope, namespaced, started_at, state, state_since, detail, filter,
			coalesce(position, ''), coalesce(last_rv, ''), last_seq, synced
		FROM kuberewind.record_streams WHERE cluster = $1 ORDER BY api_group, resource, scope`, v.cluster.Number)
	if err != nil {
		return set, err
	}
	set.all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Stream, error) {
		s := new(Stream)
		err := row.Scan(&s.ID, &s.Group, &s.Resource, &s.Version, &s.Kind, &s.Scope, &s.Namespaced, &s.StartedAt, &s.State.Name, &s.State.Since,
			&s.State.Detail, &s.Filter, &s.Position, &s.LastRV, &s.LastSeq, &s.Synced)
		s.StartedAt, s.State.Since = s.StartedAt.UTC(), s.State.Since.UTC()
		return s, err
	})
	set.byID, set.at = make(map[int32]*Stream, len(set.all)), time.Now()
	for _, s := range set.all {
		set.byID[s.ID] = s
	}
	return set, err
}

// stream returns a stream by its number. The set in memory may be a second old: if the stream is not in it, stream reads
// the set again.
func (v *view) stream(ctx context.Context, id int32) (*Stream, error) {
	set, err := v.streamSet(ctx)
	if err != nil {
		return nil, err
	}
	if s := set.byID[id]; s != nil {
		return s, nil
	}
	if err := v.refreshStreams(ctx); err != nil {
		return nil, err
	}
	if set, err = v.streamSet(ctx); err != nil {
		return nil, err
	}
	if s := set.byID[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w: stream %d", errNoStream, id)
}

// streamsIn returns the streams of a scope.
func (v *view) streamsIn(ctx context.Context, scope Scope) ([]*Stream, error) {
	set, err := v.streamSet(ctx)
	if err != nil {
		return nil, err
	}
	var in []*Stream
	for _, s := range set.all {
		if (scope.Streams == nil || slices.Contains(scope.Streams, s.ID)) && (scope.Namespace == "" || s.Scope == "" || s.Scope == scope.Namespace) {
			in = append(in, s)
		}
	}
	return in, nil
}

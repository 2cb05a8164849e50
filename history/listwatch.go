package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// source is the part of a Record that a ListWatch needs.
type source interface {
	Streams(ctx context.Context) ([]Stream, error)
	Resolve(ctx context.Context, at Instant, scope Scope) (Point, error)
	StreamRV(ctx context.Context, p Point, stream int32) (string, error)
	Rebuild(ctx context.Context, p Point, scope Scope, o RebuildOptions, emit func(Object) error) (RebuildStats, error)
	Deltas(ctx context.Context, q Query) iter.Seq2[Delta, error]
	Versions(ctx context.Context, q Query) iter.Seq2[Version, error]
}

// ListWatchOptions select the resource to list and watch.
type ListWatchOptions struct {
	// Resource as it was recorded. A ListWatch does not convert versions: if Version is not the recorded one, List fails.
	// "" takes any version.
	Resource  schema.GroupVersionResource
	Namespace string // "" means all

	// Player keeps several ListWatches in step. If it is nil, NewListWatch makes one for this ListWatch from PlayerOptions.
	Player *Player
	PlayerOptions

	// Decoder decodes objects from JSON. For informers of typed objects, use the UniversalDeserializer of client-go's
	// scheme. If it is nil, objects are *unstructured.Unstructured.
	Decoder runtime.Decoder
}

// A ListWatch lets a reflector or informer run against the record. It lists a resource as it was at an instant, and watches
// later changes, with the API server's resource versions and UIDs. It satisfies cache.ListerWatcher and
// cache.ListerWatcherWithContext.
//
// A list without a resource version, or with 0, shows PlayerOptions.From. A list with a resource version shows that moment.
// A watch continues from the resource version of a list, of an event, or any other on record. A version older than the
// record is 410 Gone. A watch without a resource version begins with the existing objects, as ADDED. Lists are not paged.
// Lists and watches honour selectors by label, metadata.name and metadata.namespace.
//
// Events are the recorded deltas. An object that a later list showed (Sync) is ADDED if it is new, and MODIFIED if it has
// changed. Otherwise it is no event. A deletion carries the last state, with the resource version of the deletion. After
// the last event up to Until, the watch sends a bookmark if bookmarks are allowed. Then Done is closed, and the watch stays
// open. Watches have no timeout.
//
// Each watch has one goroutine. Stop waits for it.
type ListWatch struct {
	player    *Player
	record    source
	options   ListWatchOptions
	delivered atomic.Int64

	mu       sync.Mutex       // protects what follows
	waiting  *member          // holds up the other members until the first watch; then nil
	lists    map[string]Point // by the resource version of the list
	last     position
	finished bool // done is closed
	done     chan struct{}
}

// A position is the last event that a watch delivered.
type position struct {
	rv  string
	seq int64
}

var (
	_ cache.ListerWatcher            = (*ListWatch)(nil)
	_ cache.ListerWatcherWithContext = (*ListWatch)(nil)
)

// NewListWatch returns a ListWatch over a record. The record must stay open as long as the ListWatch is used.
func NewListWatch(record *Record, o ListWatchOptions) *ListWatch { return newListWatch(record, o) }

func newListWatch(record source, o ListWatchOptions) *ListWatch {
	if o.Player == nil {
		o.Player = newPlayer(record, o.PlayerOptions)
	}
	return &ListWatch{
		player: o.Player, record: record, options: o, waiting: o.Player.add(), lists: make(map[string]Point), done: make(chan struct{}),
	}
}

// Player returns the Player that keeps this ListWatch in step with others.
func (l *ListWatch) Player() *Player { return l.player }

// Done is closed when a watch has delivered everything up to Until. The consumer may still process it: Delivered returns
// how much it received.
func (l *ListWatch) Done() <-chan struct{} { return l.done }

// Wait waits until Done is closed. It returns the first error of any list or watch of the Player.
func (l *ListWatch) Wait(ctx context.Context) error { return l.player.wait(ctx, l.done) }

// Delivered returns how many listed objects and taken events there were, without bookmarks. An informer's handler has seen
// everything once it was called that often.
func (l *ListWatch) Delivered() int64 { return l.delivered.Load() }

// IsWatchListSemanticsUnSupported makes reflectors list and watch. They do not request a streamed list.
func (l *ListWatch) IsWatchListSemanticsUnSupported() bool { return true }

// List calls ListWithContext.
func (l *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch calls WatchWithContext.
func (l *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// ListWithContext returns the objects, by namespace and name, in an *unstructured.UnstructuredList. With a Decoder it
// returns a *metav1.List.
func (l *ListWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := l.list(ctx, options)
	if err != nil {
		return nil, l.failed(ctx, fmt.Errorf("list %s of the record: %w", l.options.Resource.GroupResource(), err))
	}
	return list, nil
}

// WatchWithContext watches until the context ends or the watch is stopped.
func (l *ListWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := l.watch(ctx, options)
	if err != nil {
		return nil, l.failed(ctx, fmt.Errorf("watch %s of the record: %w", l.options.Resource.GroupResource(), err))
	}
	return w, nil
}

// failed passes an error to Wait, unless the error is an API status that answers the caller.
func (l *ListWatch) failed(ctx context.Context, err error) error {
	if ctx.Err() == nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		l.player.fail(err)
	}
	return err
}

func (l *ListWatch) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	selects, err := newSelection(l.options.Namespace, options)
	if err != nil {
		return nil, err
	}
	r, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	at := r.from
	if fromNow := options.ResourceVersion == "" || options.ResourceVersion == "0"; !fromNow {
		if at, err = l.at(ctx, r, options.ResourceVersion); err != nil {
			return nil, err
		}
	}
	rv, err := r.versionAt(ctx, at)
	if err != nil {
		return nil, err
	}
	objects, err := l.objects(ctx, r, at, selects)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.lists[rv] = at
	l.mu.Unlock()
	l.delivered.Add(int64(len(objects)))
	return l.listOf(r, rv, objects)
}

// A playing is the resource, the streams and the range of one list or watch.
type playing struct {
	record      source
	streams     []Stream
	scope       Scope
	from, until Point
}

// open finds the streams of the resource, and the points between which the Player plays it.
func (l *ListWatch) open(ctx context.Context) (*playing, error) {
	all, err := l.record.Streams(ctx)
	if err != nil {
		return nil, err
	}
	want := l.options.Resource
	r := &playing{record: l.record, scope: Scope{Namespace: l.options.Namespace}}
	for _, s := range all {
		if s.GroupResource() != want.GroupResource() || (want.Version != "" && want.Version != s.Version) || (r.scope.Namespace != "" && s.Scope != "" && s.Scope != r.scope.Namespace) {
			continue
		}
		r.streams = append(r.streams, s)
		r.scope.Streams = append(r.scope.Streams, s.ID)
	}
	if len(r.streams) == 0 {
		return nil, unknown(all, want)
	}
	r.from, r.until, err = l.player.points(ctx, r.scope)
	return r, err
}

func unknown(all []Stream, want schema.GroupVersionResource) error {
	for _, s := range all {
		if s.GroupResource() == want.GroupResource() && want.Version != "" && want.Version != s.Version {
			return fmt.Errorf("it is recorded in version %s, not %s: use that version, or set none", s.Version, want.Version)
		}
	}
	var names []string
	for _, s := range all {
		names = append(names, s.GroupResource().String())
	}
	slices.Sort(names)
	return fmt.Errorf("the record has no such resource; it has %s", strings.Join(slices.Compact(names), ", "))
}

// versionAt returns the resource version that the resource had reached, "" if it was not recorded yet.
func (r *playing) versionAt(ctx context.Context, p Point) (latest string, err error) {
	for i := range r.streams {
		rv, err := r.record.StreamRV(ctx, p, r.streams[i].ID)
		if err != nil {
			return "", err
		}
		latest = delta.Later(latest, rv)
	}
	return latest, nil
}

// An edge is a Point at which a reading of deltas begins or ends.
type edge struct {
	Point
	late map[int64]int64 // by object, the last delta after Seq that belongs to the Point because it was recovered later
}

// edge finds the recovered deltas that belong to a point.
func (r *playing) edge(ctx context.Context, p Point) (edge, error) {
	e := edge{Point: p}
	if p.Until <= p.Seq {
		return e, nil
	}
	e.late = make(map[int64]int64)
	ended := make(map[[2]string]Delta) // by namespace and name, the last deletion that seems to be later
	for d, err := range r.record.Deltas(ctx, Query{Scope: r.scope, FromSeq: p.Seq + 1, ToSeq: p.Until}) {
		if err != nil {
			return e, err
		}
		name := [2]string{d.Namespace, d.Name}
		if p.by(d.Seq, d.OccurredAt) {
			e.late[d.ObjectID] = d.Seq // The object's earlier deltas belong to the point, too: this one was made on them.
			if last, ok := ended[name]; ok {
				e.late[last.ObjectID] = last.Seq // So does the end of the earlier life of that name.
			}
		} else if d.Type == delta.Deleted {
			ended[name] = Delta{ObjectID: d.ObjectID, Seq: d.Seq}
		}
	}
	return e, nil
}

func (e *edge) before(d *Delta) bool {
	if e.RV != "" {
		return e.holds(d.Stream.ID, d.Seq, d.RV)
	}
	return d.Seq <= e.Seq || d.Seq <= e.late[d.ObjectID]
}

// end returns the last seq that may belong to the point.
func (e *edge) end() int64 { return max(e.Seq, e.Until) }

// at finds the point of a resource version: of a list, of the last event, or another one on record.
func (l *ListWatch) at(ctx context.Context, r *playing, rv string) (Point, error) {
	l.mu.Lock()
	list, listed := l.lists[rv]
	last := l.last
	l.mu.Unlock()
	switch {
	case last.rv == rv:
		return Point{Instant: AtSeq(last.seq), Seq: last.seq, Time: l.player.Now()}, nil
	case listed:
		return list, nil
	case !delta.Ordered(rv):
		return Point{}, apierrors.NewBadRequest(fmt.Sprintf("%q is not a resource version", rv))
	}
	p, err := r.record.Resolve(ctx, AtRV(rv), Scope{Streams: r.scope.Streams})
	if err != nil {
		return Point{}, gone(err)
	}
	end, err := r.versionAt(ctx, r.until)
	if err == nil && delta.Precedes(end, rv) {
		return Point{}, tooLarge(rv, end)
	}
	return p, err
}

func (l *ListWatch) objects(ctx context.Context, r *playing, at Point, selects *selection) ([]Object, error) {
	var mu sync.Mutex // protects objects
	var objects []Object
	_, err := r.record.Rebuild(ctx, at, r.scope, RebuildOptions{Damaged: l.player.options.Damaged}, func(o Object) error {
		if ok, err := selects.matches(o.Namespace, o.Name, o.Doc); !ok || err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		objects = append(objects, o)
		return nil
	})
	slices.SortFunc(objects, func(a, b Object) int {
		if n := strings.Compare(a.Namespace, b.Namespace); n != 0 {
			return n
		}
		return strings.Compare(a.Name, b.Name)
	})
	return objects, err
}

func (l *ListWatch) listOf(r *playing, rv string, objects []Object) (runtime.Object, error) {
	if l.options.Decoder != nil {
		list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: rv}}
		for i := range objects {
			object, err := l.decode(objects[i].Doc)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, runtime.RawExtension{Object: object})
		}
		return list, nil
	}
	list := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, len(objects))}
	list.SetGroupVersionKind(r.kind().GroupVersion().WithKind(r.kind().Kind + "List"))
	list.SetResourceVersion(rv)
	for i := range objects {
		object, err := decodeObject(objects[i].Doc)
		if err != nil {
			return nil, err
		}
		list.Items[i] = *object
	}
	return list, nil
}

func (r *playing) kind() schema.GroupVersionKind {
	s := &r.streams[0]
	return schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}
}

func (l *ListWatch) decode(doc patch.Doc) (runtime.Object, error) {
	if l.options.Decoder == nil {
		return decodeObject(doc)
	}
	object, err := runtime.Decode(l.options.Decoder, doc)
	if err != nil {
		return nil, fmt.Errorf("decode an object: %w", err)
	}
	return object, nil
}

func decodeObject(doc patch.Doc) (*unstructured.Unstructured, error) {
	value, err := patch.Decode(doc)
	if err != nil {
		return nil, fmt.Errorf("decode an object: %w", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("decode an object: the text is no JSON object")
	}
	return &unstructured.Unstructured{Object: object}, nil
}

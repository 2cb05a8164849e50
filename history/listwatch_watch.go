package history

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/fold"
	"github.com/kuberewind/kuberewind/patch"
)

// A recordWatch is a watch.Interface over the record. One goroutine reads and sends; Stop waits for it.
type recordWatch struct {
	list      *ListWatch
	playing   *playing
	selects   *selection
	from      Point // where the watch continues from
	initial   bool  // send the objects at from first
	bookmarks bool
	member    *member
	results   chan watch.Event
	stop      context.CancelFunc
	ended     chan struct{}
	once      sync.Once
}

func (l *ListWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("sendInitialEvents is not supported: list, and watch from there")
	}
	selects, err := newSelection(l.options.Namespace, options)
	if err != nil {
		return nil, err
	}
	r, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	w := &recordWatch{
		list: l, playing: r, selects: selects, from: r.from, bookmarks: options.AllowWatchBookmarks,
		initial: options.ResourceVersion == "" || options.ResourceVersion == "0",
		results: make(chan watch.Event), ended: make(chan struct{}),
	}
	if !w.initial {
		if w.from, err = l.at(ctx, r, options.ResourceVersion); err != nil {
			return nil, err
		}
	}
	w.member = l.join(w.from.sure(r.scope) + 1)
	ctx, w.stop = context.WithCancel(ctx)
	go w.run(ctx)
	return w, nil
}

// join makes a watch of the ListWatch a member of the Player. The first watch takes the place of the ListWatch itself.
func (l *ListWatch) join(bound int64) *member {
	m := l.player.join(bound)
	l.mu.Lock()
	first := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	if first != nil {
		l.player.remove(first)
	}
	return m
}

// ResultChan returns the channel of events. It is closed after Stop, after the context has ended, and after an ERROR event.
func (w *recordWatch) ResultChan() <-chan watch.Event { return w.results }

// Stop ends the watch. No event is sent after it returns.
func (w *recordWatch) Stop() {
	w.once.Do(w.stop)
	<-w.ended
}

func (w *recordWatch) run(ctx context.Context) {
	defer close(w.ended)
	defer close(w.results)
	defer w.list.player.remove(w.member)
	defer w.stop()
	err := w.play(ctx)
	if err == nil {
		<-ctx.Done()
		return
	}
	if ctx.Err() == nil {
		_ = w.list.failed(ctx, err)
		_ = w.send(ctx, watch.Event{Type: watch.Error, Object: status(err)})
	}
}

// status returns the last object of a watch. Reflectors retry after an internal error.
func status(err error) *metav1.Status {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		s := api.Status()
		return &s
	}
	return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
}

func (w *recordWatch) play(ctx context.Context) error {
	if w.initial {
		if err := w.sendInitial(ctx); err != nil {
			return err
		}
	}
	from, err := w.playing.edge(ctx, w.from)
	if err != nil {
		return err
	}
	until, err := w.playing.edge(ctx, w.playing.until)
	if err != nil {
		return err
	}
	q := Query{Scope: w.playing.scope, FromSeq: w.from.sure(w.playing.scope) + 1, ToSeq: until.end()}
	if q.FromSeq > q.ToSeq {
		return w.finish(ctx, &until)
	}
	for v, err := range w.playing.record.Versions(ctx, q) {
		var damaged *DamagedError
		if errors.As(err, &damaged) && w.list.player.options.Damaged != nil {
			w.list.player.options.Damaged(damaged)
			if v.Type != delta.Deleted {
				continue
			}
			err = w.deleteDamaged(&v)
		}
		if err != nil {
			return err
		}
		if from.before(&v.Delta) || !until.before(&v.Delta) {
			continue
		}
		if err := w.version(ctx, &v); err != nil {
			return err
		}
	}
	return w.finish(ctx, &until)
}

// deleteDamaged makes a deletion of an object whose last state is damaged. The deletion carries only metadata. Without it,
// the object would live on in the consumers' caches.
func (w *recordWatch) deleteDamaged(v *Version) (err error) {
	u := &unstructured.Unstructured{Object: make(map[string]any)}
	u.SetGroupVersionKind(w.playing.kind())
	u.SetNamespace(v.Namespace)
	u.SetName(v.Name)
	u.SetUID(types.UID(v.UID))
	u.SetResourceVersion(v.RV)
	text, err := u.MarshalJSON()
	if err == nil {
		v.Doc, err = patch.Canonical(text)
	}
	if v.Before == nil {
		v.Before = v.Doc
	}
	return err
}

func (w *recordWatch) sendInitial(ctx context.Context) error {
	objects, err := w.list.objects(ctx, w.playing, w.from, w.selects)
	if err != nil {
		return err
	}
	for i := range objects {
		object, err := w.list.decode(objects[i].Doc)
		if err != nil {
			return err
		}
		if err := w.handOver(ctx, watch.Event{Type: watch.Added, Object: object}); err != nil {
			return err
		}
	}
	return nil
}

// version delivers one version when it is its turn.
func (w *recordWatch) version(ctx context.Context, v *Version) error {
	kind, doc, err := w.event(v)
	if err != nil {
		return err
	}
	if kind == "" {
		w.list.player.endTurn(w.member, v.Seq+1)
		return nil
	}
	object, err := w.list.decode(doc)
	if err != nil {
		return err
	}
	if err := w.list.player.await(ctx, w.member, v.Seq, v.ObservedAt); err != nil {
		return err
	}
	w.list.reached(doc, v.Seq)
	if err := w.handOver(ctx, watch.Event{Type: kind, Object: object}); err != nil {
		return err
	}
	w.list.player.endTurn(w.member, v.Seq+1)
	return nil
}

// reached keeps the position of this event, for a watch that begins at its resource version.
func (l *ListWatch) reached(doc patch.Doc, seq int64) {
	rv, ok := textAt(doc, fold.ResourceVersion)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = position{rv: rv, seq: seq}
}

// event returns the event of a version for this watch; its type is "" if the watch sees no difference.
func (w *recordWatch) event(v *Version) (watch.EventType, patch.Doc, error) {
	return v.Event(w.selects.matches)
}

// Event returns what a watch sends for a version: the type, and the object. The type is "" if the watch sees no difference.
// matches reports whether the watch selects an object; its doc is nil if the object does not exist.
//
// An object that a later list showed (Sync) is ADDED if it is new, and MODIFIED if it has changed. Otherwise it is no
// event. A deletion carries the last state with the resource version of the deletion.
func (v *Version) Event(matches func(namespace, name string, doc patch.Doc) (bool, error)) (watch.EventType, patch.Doc, error) {
	after := v.Doc
	if v.Type == delta.Deleted {
		after = nil
	}
	is, err := matches(v.Namespace, v.Name, after)
	if err != nil {
		return "", nil, err
	}
	was, err := matches(v.Namespace, v.Name, v.Before)
	if err != nil {
		return "", nil, err
	}
	switch {
	case is && was:
		if v.Type == delta.Sync && bytes.Equal(v.Doc, v.Before) {
			return "", nil, nil
		}
		return watch.Modified, v.Doc, nil
	case is:
		return watch.Added, v.Doc, nil
	case was && v.Type == delta.Deleted:
		return watch.Deleted, fold.Rebased(v.Doc, v.RV), nil
	case was:
		// The object is no longer selected. An API server then sends its last selected version, with the resource version
		// of this one.
		return watch.Deleted, fold.Rebased(v.Before, v.RV), nil
	}
	return "", nil, nil
}

func textAt(doc patch.Doc, pointer string) (string, bool) {
	value, ok := patch.Get(doc, pointer)
	if !ok {
		return "", false
	}
	text, ok := patch.Unquote(value)
	return string(text), ok
}

func (w *recordWatch) handOver(ctx context.Context, event watch.Event) error {
	err := w.send(ctx, event)
	if err == nil {
		w.list.delivered.Add(1)
	}
	return err
}

func (w *recordWatch) send(ctx context.Context, event watch.Event) error {
	select {
	case w.results <- event:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish waits for the end of the play, and closes Done.
func (w *recordWatch) finish(ctx context.Context, until *edge) error {
	// The end comes after the last event of every other resource.
	if err := w.list.player.await(ctx, w.member, until.end()+1, until.Time); err != nil {
		return err
	}
	if w.bookmarks {
		rv, err := w.playing.versionAt(ctx, until.Point)
		if err != nil {
			return err
		}
		if rv != "" {
			if err := w.bookmark(ctx, rv); err != nil {
				return err
			}
		}
	}
	w.list.player.endTurn(w.member, math.MaxInt64)
	w.list.finish()
	return nil
}

func (w *recordWatch) bookmark(ctx context.Context, rv string) error {
	// A watch from this resource version continues at the end, and sends nothing.
	w.list.mu.Lock()
	w.list.lists[rv] = w.playing.until
	w.list.mu.Unlock()
	object, err := w.empty(rv)
	if err != nil {
		return err
	}
	return w.send(ctx, watch.Event{Type: watch.Bookmark, Object: object})
}

// empty returns an object of the resource's kind that has only a resource version.
func (w *recordWatch) empty(rv string) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: make(map[string]any)}
	u.SetGroupVersionKind(w.playing.kind())
	u.SetResourceVersion(rv)
	if w.list.options.Decoder == nil {
		return u, nil
	}
	text, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return w.list.decode(text)
}

func (l *ListWatch) finish() {
	l.mu.Lock()
	first := !l.finished
	l.finished = true
	l.mu.Unlock()
	if first {
		close(l.done)
		l.player.finish()
	}
}

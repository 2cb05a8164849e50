package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kuberewind/kuberewind/apiserver/internal/feed"
	"github.com/kuberewind/kuberewind/apiserver/internal/state"
	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// takesWithin is how long a client that has caught up may read nothing.
const takesWithin = 10 * time.Second

// run sends the objects at the instant, then changes as the instant moves, with bookmarks, until the watch ends.
func (o *watching) run(ctx context.Context) error {
	if o.initial {
		if err := o.sendInitial(ctx); err != nil {
			return err
		}
	}
	marks := newMarks(o.call.options.AllowWatchBookmarks)
	defer marks.stop()
	for quiet := o.closing; ; quiet = false {
		changed := o.call.at.feed.Changed()
		if err := o.sendEvents(ctx); err != nil {
			return err
		}
		if marks.due() && !quiet && !o.listing {
			if err := o.mark(ctx); err != nil {
				return err
			}
		}
		if err := o.stream.flush(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-marks.C():
			marks.set()
		}
	}
}

// marks says when a bookmark is due: first after all events were sent, then every minute.
type marks struct {
	ticker *time.Ticker // nil if the client wants no bookmarks
	now    bool
}

func newMarks(wanted bool) *marks {
	if !wanted {
		return &marks{}
	}
	return &marks{ticker: time.NewTicker(bookmarkEvery), now: true}
}

func (m *marks) set() { m.now = true }

// due reports once whether a bookmark is due.
func (m *marks) due() bool {
	now := m.now
	m.now = false
	return now
}

// C returns nil if the client wants no bookmarks.
func (m *marks) C() <-chan time.Time {
	if m.ticker == nil {
		return nil
	}
	return m.ticker.C
}

func (m *marks) stop() {
	if m.ticker != nil {
		m.ticker.Stop()
	}
}

func (o *watching) sendInitial(ctx context.Context) error {
	all, err := o.call.at.state(ctx, o.call.resource, o.call.namespace)
	if err != nil {
		return err
	}
	for e := range o.call.selected(all.Range(o.call.namespace, "")) {
		if err := o.send(ctx, watch.Added, e); err != nil {
			return err
		}
	}
	if o.closing {
		return o.bookmark(ctx, o.position, true)
	}
	return nil
}

// sendEvents sends all available events. A watch that has caught up with a moving root must keep up.
func (o *watching) sendEvents(ctx context.Context) error {
	for more := true; more; {
		var err error
		more, err = o.reader.Read(ctx, func(e *feed.Event) error { return o.take(ctx, e) })
		switch {
		case errors.Is(err, feed.ErrClosed):
			return errGone
		case errors.Is(err, feed.ErrBackward):
			return apierrors.NewResourceExpired("the clock of the session went back. List, and watch from there.")
		case errors.Is(err, feed.ErrBehind):
			return apierrors.NewResourceExpired("this watch took its events too slowly. List, and watch from there.")
		case err != nil:
			return err
		}
		o.await()
		if more {
			if err := o.stream.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// await bounds how long the client may read nothing. There is no bound for initial events and recorded history.
func (o *watching) await() {
	if o.call.at.moving != nil && o.reader.Joined() {
		o.stream.patience(takesWithin)
	} else {
		o.stream.patience(0)
	}
}

// take sends the event that a delta is to this watch.
func (o *watching) take(ctx context.Context, e *feed.Event) error {
	o.await()
	switch {
	case e.Relist != nil:
		return o.relisted(e)
	case o.after.Includes(&e.Delta) || o.skips(e):
		return nil
	case e.Err != nil:
		return apierrors.NewResourceExpired("an event cannot be sent: " + e.Err.Error() + ". List, and watch from there.")
	}
	if o.call.at.moving != nil {
		o.call.time = e.ObservedAt
	}
	if f, ok := o.call.form.(*wholeForm); ok && o.call.all {
		if shared := o.shared(ctx, f, e); shared.err == nil {
			return o.sendShared(shared)
		} // else it failed in another watch, and may succeed in this one
	}
	kind, entry, err := o.made(e)
	if err != nil || kind == "" {
		return err
	}
	return o.send(ctx, kind, entry)
}

// A sharedEvent is an event for all watches that want whole objects and have no selector.
type sharedEvent struct {
	kind watch.EventType // "" if there is no event
	body []byte
	err  error
}

func (o *watching) shared(ctx context.Context, form *wholeForm, e *feed.Event) *sharedEvent {
	return e.Memo(o.call.resource.GroupVersionResource, func() any {
		s := &sharedEvent{}
		var entry *state.Entry
		if s.kind, entry, s.err = o.made(e); s.err == nil && s.kind != "" {
			s.body, s.err = form.one(ctx, entry)
		}
		return s
	}).(*sharedEvent)
}

func (o *watching) sendShared(shared *sharedEvent) error {
	if shared.kind == "" {
		return nil
	}
	return o.stream.send(shared.kind, shared.body)
}

// made returns the event that a delta is to this watch. kind is "" if there is none.
func (o *watching) made(e *feed.Event) (watch.EventType, *state.Entry, error) {
	kind, doc, err := e.Version.Event(func(_, _ string, doc patch.Doc) (bool, error) { return doc != nil && o.call.selects.Matches(doc), nil })
	if err != nil || kind == "" {
		return "", nil, err
	}
	if change := prepare(o.call.resource.stored); change != nil {
		if doc, err = change(doc); err != nil {
			return "", nil, err
		}
	}
	entry := &state.Entry{Namespace: e.Namespace, Name: e.Name}
	entry.APIVersion, entry.Body = state.Split(doc)
	return kind, entry, nil
}

// relisted ends the watch at the end of a gap that a list closed, if the watch began before it.
func (o *watching) relisted(e *feed.Event) error {
	if e.Relist.Reversed || delta.Precedes(o.from, e.Relist.ToRV) {
		return gapEnds(o.from, e.Relist.ToRV, o.call.resource)
	}
	return nil
}

// skips reports whether an event is not sent because a list is closing a gap: its rows are in the list's order. At the end
// of the gap the watch ends.
func (o *watching) skips(e *feed.Event) bool {
	if e.Source.Listed() {
		o.listing = o.call.at.moving != nil
	}
	return o.listing
}

func (o *watching) send(ctx context.Context, kind watch.EventType, e *state.Entry) error {
	body, err := o.call.form.one(ctx, e)
	if err != nil {
		return err
	}
	return o.stream.send(kind, body)
}

// mark sends a bookmark with the position of the watch. It never sends an older version than before.
func (o *watching) mark(ctx context.Context) error {
	if m := o.call.at.moving; m != nil && o.reader.Seq() != o.call.at.point.Seq {
		at, err := m.instant(ctx, o.reader.Seq())
		if err != nil {
			return err
		}
		position, err := at.position(ctx, o.call.resource)
		if err != nil {
			return err
		}
		o.call.at = at
		if !delta.Precedes(position, o.position) {
			o.position = position
		}
	}
	return o.bookmark(ctx, o.position, false)
}

// bookmark sends an object of the resource's own kind, because a reflector drops any other.
func (o *watching) bookmark(ctx context.Context, rv string, ends bool) error {
	mark := metav1.ObjectMeta{ResourceVersion: rv}
	if ends {
		mark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	text, err := o.call.resource.empty(mark)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	e := &state.Entry{APIVersion: o.call.resource.Kind.GroupVersion().String()}
	_, e.Body = state.Split(text)
	return o.send(ctx, watch.Bookmark, e)
}

// empty returns an object of the kind with only metadata. Like the API server, it encodes a built-in kind from the internal
// version.
func (s *served) empty(metadata metav1.ObjectMeta) ([]byte, error) {
	if !legacyscheme.Scheme.Recognizes(s.Kind) {
		return json.Marshal(metav1.PartialObjectMetadata{ObjectMeta: metadata})
	}
	object, err := legacyscheme.Scheme.New(s.Kind.GroupKind().WithVersion(runtime.APIVersionInternal))
	if err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion(metadata.ResourceVersion)
	accessor.SetAnnotations(metadata.Annotations)
	return runtime.Encode(legacyscheme.Codecs.LegacyCodec(s.Kind.GroupVersion()), object)
}

// errGone is returned if the client has closed the connection.
var errGone = errors.New("the client is gone")

// fail ends the watch with an ERROR event.
func (o *watching) fail(err error) error {
	if errors.Is(err, errGone) {
		return nil
	}
	body, err := statusJSON(wire.Status(unresolved(err)))
	if err != nil {
		return err
	}
	return o.stream.send(watch.Error, body)
}

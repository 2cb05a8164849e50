package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// CauseUndecodable is the cause in the Status of an ERROR event that this package makes if it cannot decode the server's
// data. client-go's own watches use the same cause.
const CauseUndecodable metav1.CauseType = "ClientWatchDecoding"

// Watch is a watch.Interface over one streamed response. [ListWatch] starts it.
//
// The channel delivers *[Object], and *metav1.Status for an ERROR event. After an ERROR event, or when the stream ends, the
// watch closes the channel. Err then returns the reason.
type Watch struct {
	resource Resource
	body     io.ReadCloser
	scanner  *scanner
	cancel   context.CancelCauseFunc
	ctx      context.Context
	results  chan watch.Event
	done     chan struct{}

	mu  sync.Mutex // protects err
	err error
}

var _ watch.Interface = (*Watch)(nil)

// errStopped is the cause of the end if the consumer stopped the watch.
var errStopped = errors.New("watch stopped")

// newWatch takes ownership of the body and of cancel, which ends the request.
func newWatch(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser, resource Resource, limit int64) *Watch {
	w := &Watch{
		resource: resource,
		body:     body,
		scanner:  newScanner(body, limit),
		ctx:      ctx,
		cancel:   cancel,
		results:  make(chan watch.Event),
		done:     make(chan struct{}),
	}
	go w.run()
	return w
}

// ResultChan implements watch.Interface.
func (w *Watch) ResultChan() <-chan watch.Event { return w.results }

// Stop ends the watch, waits for its goroutine and releases the connection. It can be called more than once and from any
// goroutine.
func (w *Watch) Stop() {
	w.cancel(errStopped)
	<-w.done
}

// Err returns why the channel was closed. It returns nil after Stop or an orderly end of the stream, and an
// io.ErrUnexpectedEOF if the stream ended within an object. Otherwise it returns the context's cause or the connection's
// error. After an ERROR event that this package made, it returns the error in that event.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// run owns the response body.
func (w *Watch) run() {
	defer close(w.done)
	defer close(w.results)
	unblock := context.AfterFunc(w.ctx, func() { _ = w.body.Close() })
	defer func() {
		unblock()
		w.cancel(errStopped)
		_ = w.body.Close()
	}()
	for {
		event, err := w.next()
		if err != nil {
			w.end(err)
			return
		}
		if !w.send(event) || event.Type == watch.Error {
			w.end(nil)
			return
		}
	}
}

// send reports whether the consumer took the event.
func (w *Watch) send(event watch.Event) bool {
	select {
	case w.results <- event:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// end sets Err. If a new connection would not repair the error, end also sends the consumer an ERROR event.
func (w *Watch) end(err error) {
	cause := context.Cause(w.ctx)
	switch {
	case errors.Is(cause, errStopped):
		err = nil
	case cause != nil:
		err = cause
	case errors.Is(err, io.EOF):
		err = nil
	case err != nil:
		err = fmt.Errorf("watch of %s: %w", w.resource, err)
	}
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
	if isContent(err) {
		w.send(watch.Event{Type: watch.Error, Object: undecodableStatus(err)})
	}
}

// isContent reports whether an error concerns the sent data, and not the connection. A stream that ends within an object is
// an error of the connection.
func isContent(err error) bool {
	var large *FrameTooLargeError
	var bad *UndecodableError
	var garbage *garbageError
	return errors.As(err, &large) || errors.As(err, &bad) || errors.As(err, &garbage)
}

func undecodableStatus(err error) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     http.StatusInternalServerError,
		Reason:   metav1.StatusReasonInternalError,
		Message:  err.Error(),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: CauseUndecodable, Message: err.Error()},
		}},
	}
}

// garbageError is returned if a stream is not a sequence of watch events.
type garbageError struct{ err error }

func (e *garbageError) Error() string { return "the stream is not JSON watch events: " + e.err.Error() }
func (e *garbageError) Unwrap() error { return e.err }

// frame is a partly read watch event.
type frame struct {
	kind   string
	object *Object
	where  span
	wrong  error // of the object
}

// next reads one event. If the stream ends between two events, it returns io.EOF.
func (w *Watch) next() (watch.Event, error) {
	w.scanner.input.mark(w.scanner.dec.InputOffset())
	f := frame{object: &Object{}}
	_, err := w.scanner.members(func(name []byte) error { return w.member(&f, name) })
	if err != nil {
		return watch.Event{}, w.fault(err, f.object)
	}
	return w.event(f)
}

// member reads one member of a frame.
func (w *Watch) member(f *frame, name []byte) error {
	var err error
	switch string(name) {
	case "type":
		return w.scanner.decode(&f.kind)
	case "object":
		f.where, err = w.scanner.item(f.object)
		if bad := (*decodeError)(nil); errors.As(err, &bad) {
			f.wrong = bad.err
			return nil
		}
		return err
	}
	return w.scanner.skip()
}

// fault turns an error of the text into a garbageError, and adds the object's name to other errors.
func (w *Watch) fault(err error, o *Object) error {
	var bad *decodeError
	var not *notObjectError
	switch {
	case errors.As(err, &bad), errors.As(err, &not), isSyntax(err):
		return &garbageError{err}
	}
	return nameFrame(err, o)
}

// event makes the event of a complete frame.
func (w *Watch) event(f frame) (watch.Event, error) {
	switch kind := watch.EventType(f.kind); kind {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		if f.wrong == nil && f.where.end == 0 {
			f.wrong = errors.New("the event has no object")
		}
		if f.wrong != nil {
			return watch.Event{}, &UndecodableError{Resource: w.resource, Namespace: f.object.Namespace, Name: f.object.Name, Index: -1, Err: f.wrong}
		}
		if kind == watch.Bookmark {
			return watch.Event{Type: kind, Object: bookmark(f.object)}, nil
		}
		f.object.JSON = w.scanner.input.copyOf(f.where.start, f.where.end, 0)
		return watch.Event{Type: kind, Object: f.object}, nil
	case watch.Error:
		status, err := w.status(f)
		return watch.Event{Type: kind, Object: status}, err
	}
	return watch.Event{}, &garbageError{fmt.Errorf("an event of type %q", f.kind)}
}

func bookmark(o *Object) *Object {
	return &Object{TypeMeta: o.TypeMeta, ObjectMeta: metav1.ObjectMeta{ResourceVersion: o.ResourceVersion}}
}

// status decodes the object of an ERROR event. If it is not a Status, status returns a garbageError.
func (w *Watch) status(f frame) (runtime.Object, error) {
	if f.where.end == 0 {
		return nil, &garbageError{errors.New("an ERROR event without a Status")}
	}
	text := w.scanner.input.copyOf(f.where.start, f.where.end, 0)
	status := &metav1.Status{}
	if err := json.Unmarshal(text, status); err != nil || status.Kind != "Status" {
		return nil, &garbageError{fmt.Errorf("an ERROR event without a Status: %.200q", text)}
	}
	return status, nil
}

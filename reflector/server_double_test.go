package reflector

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

var podResource = schema.GroupResource{Resource: "pods"}

// change is one entry of the server's history.
type change struct {
	rv    int
	event watch.Event
}

// server is an API server for pods. Its history can expire, and it fails on request. Real servers cannot be made to
// show these faults at will.
type server struct {
	mu        sync.Mutex
	rv        int
	history   []change
	forgotten int           // watches and snapshots from before here have expired
	compacted int           // lists at exact versions from before here have expired, too
	changed   chan struct{} // closed and replaced at each change
	lives     int           // makes UIDs
	tally

	lists   []metav1.ListOptions
	watches []metav1.ListOptions
	// onList and onWatch, if set, return a fault for each request. faults protects the state that they use.
	faults  sync.Mutex
	onList  func(metav1.ListOptions) error
	onWatch func(metav1.ListOptions) watchPlan
}

// tally counts what the server did.
type tally struct {
	open                     int // watches that were not stopped
	sent                     int // events that were taken from watches
	saidGone, failedInStream int // 410s, and ERRORs of other kinds
}

// watchPlan is the course of one watch.
type watchPlan struct {
	refuse    error          // instead of a watch
	cutAfter  int            // ends after so many events, if > 0
	sharply   runtime.Object // sent as ERROR at the end, if set
	immediate bool           // ends before the first event
	holdUntil chan struct{}  // sends nothing before it is closed, if set
}

func newServer(at int) *server {
	return &server{rv: at, forgotten: at, changed: make(chan struct{})}
}

func pod(name, rv string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: rv,
	}}
}

func podList(rv, next string, pods ...*v1.Pod) *v1.PodList {
	list := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: rv, Continue: next}}
	for _, p := range pods {
		list.Items = append(list.Items, *p)
	}
	return list
}

// watched, listed and count return what the server has seen so far.
func (s *server) watched() []metav1.ListOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.watches)
}

func (s *server) listed() []metav1.ListOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lists)
}

func (s *server) count(n *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *n
}

// set changes the state that onList and onWatch use.
func (s *server) set(change func()) {
	s.faults.Lock()
	defer s.faults.Unlock()
	change()
}

// write adds one change. Several names share a resource version only for deletes.
func (s *server) write(kind watch.EventType, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	state := s.stateAt(s.rv)
	for _, name := range names {
		object := pod(name, strconv.Itoa(s.rv))
		if old := state[name]; old != nil {
			object.UID = old.UID
		} else {
			s.lives++
			object.UID = types.UID(fmt.Sprintf("%s-%d", name, s.lives))
		}
		s.history = append(s.history, change{s.rv, watch.Event{Type: kind, Object: object}})
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// elsewhere moves the resource version by a write to another resource.
func (s *server) elsewhere() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
}

// bookmark sends a bookmark to all watches.
func (s *server) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	mark := &v1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.rv)}}
	s.history = append(s.history, change{s.rv, watch.Event{Type: watch.Bookmark, Object: mark}})
	close(s.changed)
	s.changed = make(chan struct{})
}

// forget drops the history up to now that can be watched.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten = s.rv
}

// compact drops the history up to now.
func (s *server) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten, s.compacted = s.rv, s.rv
}

// stateAt returns the pods at a resource version. The caller holds mu.
func (s *server) stateAt(rv int) map[string]*v1.Pod {
	state := map[string]*v1.Pod{}
	for _, c := range s.history {
		p := c.event.Object.(*v1.Pod)
		switch {
		case c.rv > rv:
		case c.event.Type == watch.Deleted:
			delete(state, p.Name)
		case c.event.Type != watch.Bookmark:
			state[p.Name] = p
		}
	}
	return state
}

func (s *server) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

func (s *server) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

func (s *server) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	s.lists = append(s.lists, options)
	s.mu.Unlock()
	var fault error
	if s.onList != nil {
		s.set(func() { fault = s.onList(options) })
	}
	if fault != nil {
		return nil, fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, from := s.rv, 0
	if options.Continue != "" {
		if _, err := fmt.Sscanf(options.Continue, "%d/%d", &at, &from); err != nil {
			return nil, err
		}
		// A list that began as an exact one lasts as long as the history.
		if at < s.compacted || at < s.forgotten && !strings.HasSuffix(options.Continue, exactly) {
			return nil, expired()
		}
	}
	exact := options.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	if exact {
		var err error
		if at, err = strconv.Atoi(options.ResourceVersion); err != nil || at > s.rv {
			return nil, apierrors.NewBadRequest("no such resource version")
		}
		if at < s.compacted {
			return nil, expired()
		}
	}
	list := s.pageAt(at, from, int(options.Limit))
	if list.Continue != "" && (exact || strings.HasSuffix(options.Continue, exactly)) {
		list.Continue += exactly
	}
	return list, nil
}

// exactly marks the tokens of lists at exact versions.
const exactly = "/exactly"

// pageAt returns a page of the state at a resource version.
func (s *server) pageAt(at, from, limit int) *v1.PodList {
	state := s.stateAt(at)
	names := make([]string, 0, len(state))
	for name := range state {
		names = append(names, name)
	}
	slices.Sort(names)
	names = names[from:]
	list := podList(strconv.Itoa(at), "")
	if limit > 0 && len(names) > limit {
		list.Continue = fmt.Sprintf("%d/%d", at, from+limit)
		remaining := int64(len(names) - limit)
		list.RemainingItemCount = &remaining
		names = names[:limit]
	}
	for _, name := range names {
		list.Items = append(list.Items, *state[name])
	}
	return list
}

func (s *server) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	s.watches = append(s.watches, options)
	s.mu.Unlock()
	var plan watchPlan
	if s.onWatch != nil {
		s.set(func() { plan = s.onWatch(options) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if plan.refuse != nil {
		if isExpired(plan.refuse) {
			s.saidGone++
		}
		return nil, plan.refuse
	}
	from, err := strconv.Atoi(options.ResourceVersion)
	if err != nil {
		return nil, apierrors.NewBadRequest("bad resource version")
	}
	if from < s.forgotten {
		// As the real server does: it accepts the watch, and then sends an ERROR in the stream.
		plan = watchPlan{immediate: true, sharply: status(expired())}
	}
	s.open++
	w := &serverWatch{server: s, results: make(chan watch.Event), stopped: make(chan struct{})}
	go w.serve(ctx, from, plan)
	return w, nil
}

// requests returns the resource versions of watches and the number of lists.
func (s *server) requests() (watches []string, lists int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, options := range s.watches {
		watches = append(watches, options.ResourceVersion)
	}
	return watches, len(s.lists)
}

type serverWatch struct {
	server  *server
	results chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

func (w *serverWatch) ResultChan() <-chan watch.Event { return w.results }

func (w *serverWatch) Stop() {
	w.once.Do(func() {
		close(w.stopped)
		w.server.mu.Lock()
		w.server.open--
		w.server.mu.Unlock()
	})
}

func (w *serverWatch) serve(ctx context.Context, from int, plan watchPlan) {
	defer close(w.results)
	next, sent := 0, 0
	if plan.holdUntil != nil {
		select {
		case <-plan.holdUntil:
		case <-ctx.Done():
			return
		case <-w.stopped:
			return
		}
	}
	for !plan.immediate && (plan.cutAfter == 0 || sent < plan.cutAfter) {
		w.server.mu.Lock()
		history, changed := w.server.history, w.server.changed
		w.server.mu.Unlock()
		if next == len(history) {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-w.stopped:
				return
			}
			continue
		}
		c := history[next]
		next++
		if c.rv <= from {
			continue
		}
		if !w.send(ctx, c.event) {
			return
		}
		sent++
	}
	if plan.sharply != nil && w.send(ctx, watch.Event{Type: watch.Error, Object: plan.sharply}) {
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		if isExpired(apierrors.FromObject(plan.sharply)) {
			w.server.saidGone++
		} else {
			w.server.failedInStream++
		}
	}
}

func (w *serverWatch) send(ctx context.Context, event watch.Event) bool {
	select {
	case w.results <- watch.Event{Type: event.Type, Object: event.Object.DeepCopyObject()}:
		w.server.mu.Lock()
		w.server.sent++
		w.server.mu.Unlock()
		return true
	case <-ctx.Done():
	case <-w.stopped:
	}
	return false
}

func expired() error { return apierrors.NewResourceExpired("too old resource version") }

func forbidden() error {
	return apierrors.NewForbidden(podResource, "", fmt.Errorf("no such right"))
}

func internal() error { return apierrors.NewInternalError(fmt.Errorf("conversion failed")) }

func refused() error { return fmt.Errorf("dial: %w", syscall.ECONNREFUSED) }

func tooMany(retryAfter int) error {
	return apierrors.NewTooManyRequests("overloaded", retryAfter)
}

// status returns an API error in the form in which a stream carries it.
func status(err error) *metav1.Status {
	s := err.(apierrors.APIStatus).Status()
	if s.Code == 0 {
		s.Code = http.StatusInternalServerError
	}
	return &s
}

// expiredBefore returns the error of a watch cache whose history begins after first.
func expiredBefore(first int) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: 1 (%d)", first))
}

package reflector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/delta"
)

// scenario is one drawn run: the steps of the server, and the faults.
type scenario struct {
	steps      []step
	watches    []watchPlan // faults of watches, in turn
	lists      []error     // faults of list requests, in turn; nil is none
	storeFails []bool      // faults of store calls, in turn
	pageSize   int64
	recorded   bool // begins at a recorded position
	fresh      bool // new connections are possible
	revisions  int  // how many are recovered
}

// step is one event at the server, after a while.
type step struct {
	after time.Duration
	do    string // write delete-some bookmark elsewhere forget compact
	name  string
}

func drawScenario(t *rapid.T) scenario {
	names := []string{"a", "b", "c", "d", "e"}
	steps := rapid.Custom(func(t *rapid.T) step {
		return step{
			after: time.Duration(rapid.IntRange(0, 20_000).Draw(t, "after")) * time.Millisecond,
			do: rapid.SampledFrom([]string{"write", "write", "write", "write", "delete-some",
				"bookmark", "elsewhere", "forget", "forget", "compact"}).Draw(t, "do"),
			name: rapid.SampledFrom(names).Draw(t, "name"),
		}
	})
	return scenario{
		steps:      rapid.SliceOfN(steps, 1, 40).Draw(t, "steps"),
		watches:    rapid.SliceOfN(rapid.SampledFrom(watchFaults()), 0, 30).Draw(t, "watches"),
		lists:      rapid.SliceOfN(rapid.SampledFrom(listFaults()), 0, 10).Draw(t, "lists"),
		storeFails: rapid.SliceOfN(rapid.Bool(), 0, 20).Draw(t, "store"),
		pageSize:   rapid.Int64Range(1, 3).Draw(t, "page size"),
		recorded:   rapid.Bool().Draw(t, "recorded"),
		fresh:      rapid.Bool().Draw(t, "fresh"),
		revisions:  rapid.SampledFrom([]int{0, 3, 100}).Draw(t, "revisions"),
	}
}

func watchFaults() []watchPlan {
	faults := []watchPlan{{}, {}, {cutAfter: 1}, {cutAfter: 2}, {cutAfter: 3}, {immediate: true}}
	for _, err := range []error{expired(), tooMany(3), internal(), forbidden()} {
		faults = append(faults,
			watchPlan{refuse: err},
			watchPlan{immediate: true, sharply: status(err)},
			watchPlan{cutAfter: 2, sharply: status(err)})
	}
	return append(faults, watchPlan{refuse: refused()}, watchPlan{refuse: apierrors.NewServiceUnavailable("starting")})
}

func listFaults() []error {
	return []error{nil, nil, nil, expired(), tooMany(3), internal(), forbidden(), refused()}
}

// play runs a scenario to its end, and then long enough for the store to catch up.
func (sc scenario) play(t *testing.T) (*server, *ledger, string) {
	s, store := newServer(9), &ledger{}
	nextWatch, nextList, nextStore := 0, 0, 0
	s.onWatch = func(metav1.ListOptions) watchPlan { return takeNext(sc.watches, &nextWatch) }
	s.onList = func(metav1.ListOptions) error { return takeNext(sc.lists, &nextList) }
	store.decide = func(c call) error {
		if c.method != "abort" && takeNext(sc.storeFails, &nextStore) {
			return errors.New("database is down")
		}
		return nil
	}
	options := Options{PageSize: sc.pageSize, RecoverRevisions: sc.revisions}
	if sc.recorded {
		options.ResourceVersion = "9"
	}
	if sc.fresh {
		options.Fresh = func() cache.ListerWatcher { return s }
	}
	r := NewReflectorWithOptions(s, &v1.Pod{}, store, options)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.RunWithContext(ctx) }()
	for _, step := range sc.steps {
		time.Sleep(step.after)
		s.do(step)
	}
	time.Sleep(2 * time.Hour)
	synctest.Wait()
	position := r.LastSyncResourceVersion()
	cancel()
	<-done
	return s, store, position
}

// takeNext returns each element in turn, and then zero values.
func takeNext[T any](from []T, next *int) T {
	var none T
	if *next >= len(from) {
		return none
	}
	*next++
	return from[*next-1]
}

// do is one step at the server.
func (s *server) do(step step) {
	s.mu.Lock()
	state := s.stateAt(s.rv)
	s.mu.Unlock()
	switch {
	case step.do == "bookmark":
		s.bookmark()
	case step.do == "elsewhere":
		s.elsewhere()
	case step.do == "forget":
		s.forget()
	case step.do == "compact":
		s.compact()
	case step.do == "delete-some" && len(state) > 0:
		var names []string
		for name := range state {
			names = append(names, name)
		}
		slices.Sort(names)
		s.write(watch.Deleted, names...)
	case state[step.name] != nil:
		s.write(watch.Modified, step.name)
	default:
		s.write(watch.Added, step.name)
	}
}

// TestTheStoreGetsEveryEventOnceInOrderOrAnAnnouncedReplace is the promise of
// the package (I1, I2, I3) under random faults of server and store.
func TestTheStoreGetsEveryEventOnceInOrderOrAnAnnouncedReplace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sc := drawScenario(rt)
		var err error
		var calls []string
		synctest.Test(t, func(t *testing.T) {
			s, store, position := sc.play(t)
			a := audit{server: s, known: sc.recorded, at: 9}
			err = a.check(store.accepted, position)
			calls = store.calls()
		})
		if err != nil {
			rt.Fatalf("%v\nstore: %q", err, calls)
		}
	})
}

// audit reads a store's calls against the server's history.
type audit struct {
	server      *server
	known       bool // a position is recorded
	at          int  // everything up to here is delivered or in a gap
	next        int  // the next entry of history to be delivered
	replacing   bool
	items       map[string]string
	interrupted bool
}

func (a *audit) check(calls []call, position string) error {
	for i, c := range calls {
		if err := a.one(c); err != nil {
			return fmt.Errorf("call %d, %s: %w", i, c, err)
		}
	}
	if a.skipBookmarks(); a.next != len(a.server.history) {
		return fmt.Errorf("the store did not get %d events", len(a.server.history)-a.next)
	}
	if a.replacing || a.interrupted || !a.known && len(calls) > 0 {
		return fmt.Errorf("at the end: replacing %v, interrupted %v, known %v", a.replacing, a.interrupted, a.known)
	}
	if position != strconv.Itoa(a.at) && a.known {
		return fmt.Errorf("position is %s, the store is at %d", position, a.at)
	}
	if a.server.open != 0 {
		return fmt.Errorf("%d watches are still open", a.server.open)
	}
	return nil
}

func (a *audit) one(c call) error {
	switch c.method {
	case "begin":
		return a.begin(c)
	case "page":
		return a.page(c)
	case "abort":
		a.replacing = false
	case "end":
		return a.end(c)
	case "interrupted":
		a.interrupted = true
	case "resumed":
		if !a.interrupted {
			return errors.New("nothing was interrupted")
		}
		a.interrupted = false
	case "bookmark":
		return a.bookmark(c)
	default:
		return a.event(c)
	}
	return nil
}

// begin is right if nothing is recorded or the server has given a cause.
func (a *audit) begin(c call) error {
	if a.replacing {
		return errors.New("two lists at once")
	}
	a.replacing, a.items = true, map[string]string{}
	if (c.cause == delta.CauseFirstList) == a.known {
		return fmt.Errorf("cause %s, position recorded: %v", c.cause, a.known)
	}
	if !a.known {
		return nil
	}
	if !a.server.gaveCause() {
		return errors.New("a needless list: the server never said 410, and nothing failed often")
	}
	if from, err := strconv.Atoi(c.rv); err != nil || from > a.at {
		return fmt.Errorf("from %q, the store is at %d", c.rv, a.at)
	}
	return nil
}

func (a *audit) page(c call) error {
	for _, object := range c.objects {
		if _, twice := a.items[object.GetName()]; twice || !a.replacing {
			return fmt.Errorf("%s twice, or outside of a list", object.GetName())
		}
		a.items[object.GetName()] = object.GetResourceVersion()
	}
	return nil
}

// end is right if the pages together show the objects at the list's version.
func (a *audit) end(c call) error {
	at, err := strconv.Atoi(c.rv)
	if err != nil || !a.replacing {
		return fmt.Errorf("end without a list, or at %q", c.rv)
	}
	state := a.server.stateAt(at)
	for name, p := range state {
		if a.items[name] != p.ResourceVersion {
			return fmt.Errorf("%s@%s is missing", name, p.ResourceVersion)
		}
	}
	if len(a.items) != len(state) {
		return fmt.Errorf("%d objects listed, %d existed", len(a.items), len(state))
	}
	a.replacing, a.interrupted, a.known = false, false, true
	a.at, a.next = at, 0
	for a.next < len(a.server.history) && a.server.history[a.next].rv <= at {
		a.next++
	}
	return nil
}

func (a *audit) bookmark(c call) error {
	at, err := strconv.Atoi(c.rv)
	if err != nil || a.replacing || a.interrupted {
		return errors.New("not now")
	}
	for _, h := range a.server.history[a.next:] {
		if h.event.Type != watch.Bookmark && h.rv <= at {
			return fmt.Errorf("passes %s@%d", h.event.Type, h.rv)
		}
	}
	a.at, a.known = max(a.at, at), true
	return nil
}

// event is right if it is the next of the history.
func (a *audit) event(c call) error {
	if a.replacing || a.interrupted {
		return errors.New("not now")
	}
	if a.skipBookmarks(); a.next == len(a.server.history) {
		return errors.New("the server served no more")
	}
	due := a.server.history[a.next]
	methods := map[watch.EventType]string{watch.Added: "add", watch.Modified: "update", watch.Deleted: "delete"}
	object := due.event.Object.(*v1.Pod)
	if c.method != methods[due.event.Type] || c.objects[0].GetUID() != object.UID ||
		c.objects[0].GetResourceVersion() != object.ResourceVersion {
		return fmt.Errorf("due was %s %s@%d", due.event.Type, object.Name, due.rv)
	}
	a.next++
	a.at, a.known = due.rv, true
	return nil
}

// skipBookmarks passes over bookmarks, for which the audit does not wait.
func (a *audit) skipBookmarks() {
	for a.next < len(a.server.history) && a.server.history[a.next].event.Type == watch.Bookmark {
		a.next++
	}
}

// gaveCause reports whether the server has sent a 410, or has failed within streams often enough for a list.
func (s *server) gaveCause() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saidGone > 0 || s.failedInStream >= poisonLimit
}

package reflector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

const (
	// watchGrace is how much longer than asked for a watch may last before it
	// is cut here: the server, or the way to it, has forgotten it.
	watchGrace = 30 * time.Second
	// shortWatch is client-go's measure of a watch that ended at once.
	shortWatch = time.Second
	// settleAfter is how long a watch must last without an error to count as
	// working: a server reports 410 within a watch that it has accepted.
	settleAfter = 5 * time.Second
	// freshTries is how many new connections are tried after a 410, each after
	// up to freshPause.
	freshTries = 2
	freshPause = 500 * time.Millisecond
)

// stream is one watch.
type stream struct {
	watch  watch.Interface // nil: it has ended, ahead is what is left of it
	ahead  []watch.Event   // read ahead during a list, older than what watch gives
	ctx    context.Context // ends with the watch; nil if watch is
	cancel context.CancelFunc

	asked  time.Time // when the request was made
	heard  time.Time // when the last event was dealt with, at first when it was opened
	works  bool      // it has sent an event, or lasted for settleAfter
	events int
}

func (s *stream) stop() {
	if s.watch != nil {
		s.watch.Stop()
		s.cancel()
	}
}

// open starts a watch. It changes nothing of the reflector.
func (r *Reflector) open(ctx context.Context, source cache.ListerWatcherWithContext, from string) (*stream, error) {
	seconds := int64(r.options.MinWatchTimeout.Seconds() * (1 + rand.Float64()))
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+watchGrace)
	s := &stream{ctx: ctx, cancel: cancel, asked: r.clock.Now()}
	var err error
	s.watch, err = source.WatchWithContext(ctx, metav1.ListOptions{
		ResourceVersion:     from,
		TimeoutSeconds:      &seconds,
		AllowWatchBookmarks: true,
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch %s from resource version %s: %w", r.TypeDescription(), from, err)
	}
	r.options.Hooks.WatchOpened(from)
	s.heard = r.clock.Now()
	return s, nil
}

// closeStream stops a watch and tells the hook.
func (r *Reflector) closeStream(s *stream, err error) {
	if s.watch == nil {
		return
	}
	s.stop()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	r.options.Hooks.WatchClosed(err)
}

// nextSource is where the next watch is opened.
func (r *Reflector) nextSource() cache.ListerWatcherWithContext {
	if r.useFresh && r.options.Fresh != nil {
		r.useFresh = false
		return cache.ToListerWatcherWithContext(r.options.Fresh())
	}
	return r.source
}

// watch brings one watch to the store until it ends: s if there is one already,
// else one from where the cursor is. nil means that it ended cleanly.
func (r *Reflector) watch(ctx context.Context, s *stream) (err error) {
	if s == nil {
		if s, err = r.open(ctx, r.nextSource(), r.at.Complete); err != nil {
			return err
		}
	}
	r.at.began()
	defer func() {
		if s.works && r.clock.Since(s.asked) >= shortWatch {
			// What fails next is another trouble than what failed before: a server that is
			// restarted often is not one that should be spared.
			r.retry.reset()
		}
		r.closeStream(s, err)
	}()
	for i := range s.ahead {
		event := s.ahead[i]
		s.ahead[i] = watch.Event{} // the store decides how long it is kept
		if err := r.handle(s, event); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if s.watch == nil {
		return nil
	}
	return r.consume(ctx, s)
}

// consume reads a watch until it ends.
func (r *Reflector) consume(ctx context.Context, s *stream) error {
	resync, stopResync := r.resyncTimer()
	defer func() { stopResync() }()
	quiet := r.clock.NewTimer(settleAfter)
	defer quiet.Stop()
	s.heard = r.clock.Now()
	for {
		select {
		case <-s.ctx.Done():
			r.at.ended(r.clock.Now())
			return ctx.Err() // nil if it only lasted too long
		case event, ok := <-s.watch.ResultChan():
			if !ok {
				return r.endOfStream(s)
			}
			if err := r.handle(s, event); err != nil {
				return err
			}
		case proof := <-r.reversals:
			if err := r.reverse(ctx, proof); err != nil {
				return err
			}
			return errReversed
		case <-quiet.C():
			next, err := r.whenQuiet(ctx, s)
			if err != nil {
				return err
			}
			quiet.Reset(next)
		case <-resync:
			if err := r.resync(); err != nil {
				return err
			}
			stopResync()
			resync, stopResync = r.resyncTimer()
		}
	}
}

// endOfStream is what a watch's clean end means.
func (r *Reflector) endOfStream(s *stream) error {
	now := r.clock.Now()
	r.at.ended(now)
	if s.events == 0 && now.Sub(s.asked) < shortWatch {
		return errShortWatch
	}
	return nil
}

// handle brings one event to the store and, I1, only then moves the position.
func (r *Reflector) handle(s *stream, event watch.Event) error {
	if event.Type == watch.Error {
		r.at.ended(r.clock.Now())
		return inStream(fmt.Errorf("watch %s at resource version %s: %w",
			r.TypeDescription(), r.at.Newest, apierrors.FromObject(event.Object)))
	}
	object, err := r.expectation.metadata(event.Object)
	if err != nil {
		return &failure{kind: poisonFailure, err: fmt.Errorf("watch %s: %s event after resource version %s: %w",
			r.TypeDescription(), event.Type, r.at.Newest, err)}
	}
	if err := r.nowWorks(s); err != nil {
		return err
	}
	s.events++
	if seen := sightingOf(event.Type, object); !r.at.repeats(seen, r.clock.Now()) {
		if err := r.out.deliver(event, seen.rv); err != nil {
			return err
		}
		r.quiet.heard(event.Type, r.advance(seen), r.clock.Now())
	}
	s.heard = r.clock.Now()
	return nil
}

// advance moves the position past an event that the store has accepted (I1),
// and reports whether it has moved.
func (r *Reflector) advance(seen sighting) bool {
	r.provisional = false
	if seen.kind == watch.Bookmark {
		r.bookmarks, r.quiet.unmarked = true, false
	}
	moved := r.at.saw(seen, r.clock.Now())
	if moved {
		r.publish()
	}
	if delta.Resumable(seen.rv) {
		r.out.updateResourceVersion(r.at.Newest)
	}
	return moved
}

// afterWatch decides how to go on after a watch has ended: nil to go on at once,
// else after a pause.
func (r *Reflector) afterWatch(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, errReversed):
		return nil
	case kindOf(err) == storeFailure:
		return err
	case errors.Is(err, errSilent):
		r.useFresh = true
		return nil
	case isExpired(err):
		return r.afterExpiry(ctx, err)
	default:
		return err
	}
}

// afterExpiry tries new connections, which may lead to an API server that still
// has the history, and then to recover it, before it has the resource listed. That a list's own
// resource version has expired calls for a pause, or the two would chase each
// other.
func (r *Reflector) afterExpiry(ctx context.Context, err error) error {
	if r.options.Fresh != nil && r.recorded() && r.health.freshTries < freshTries {
		r.health.freshTries++
		r.useFresh = true
		r.pause(ctx, rand.N(freshPause))
		return ctx.Err() // The history is asked for before the next watch.
	}
	// To recover is to compare two revisions of one history.
	if failed := r.inHistory(ctx); failed != nil || r.reversed != "" {
		return failed
	}
	if recovered, failed := r.recover(ctx, err); recovered || failed != nil {
		return failed
	}
	r.pending = &relist{cause: delta.CauseExpired, detail: err.Error()}
	if r.health.unproven {
		return err
	}
	return nil
}

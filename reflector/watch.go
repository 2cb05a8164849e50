package reflector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/delta"
)

const (
	// shortWatch is client-go's bound for a watch that ended at once.
	shortWatch = time.Second
	// worksAfter is how long a watch must last without an error to count as working: a server reports 410 within a
	// watch that it has accepted.
	worksAfter = 5 * time.Second
	// freshPause is the longest pause before a new connection after a 410.
	freshPause = 500 * time.Millisecond
)

// openWatch is one watch.
type openWatch struct {
	watch  watch.Interface // nil: the watch has ended, and only ahead is left
	ahead  []watch.Event   // read ahead during a list, older than the events of watch
	ctx    context.Context // ends with the watch; nil if watch is
	cancel context.CancelFunc

	asked  time.Time // when the request was made
	heard  time.Time // when the last event was handled, or at first when the watch was opened
	works  bool      // it has sent an event, or lasted for worksAfter
	events int
}

func (s *openWatch) stop() {
	if s.watch != nil {
		s.watch.Stop()
		s.cancel()
	}
}

// watch delivers one watch to the store until it ends. It uses s, or opens a watch at the cursor if s is nil. It
// returns nil if the watch ended cleanly.
func (r *Reflector) watch(ctx context.Context, s *openWatch) (err error) {
	if s == nil {
		if s, err = r.source.openNext(ctx, r.place.at.Complete); err != nil {
			return err
		}
	}
	r.place.at.began()
	defer func() {
		if s.works && r.options.Clock.Since(s.asked) >= shortWatch {
			// The next failure is a new problem, so its pause starts short. A server that restarts often need not be
			// spared.
			r.retries.progress()
		}
		r.source.close(s, err)
	}()
	for i := range s.ahead {
		event := s.ahead[i]
		s.ahead[i] = watch.Event{} // the store decides how long it keeps the event
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
func (r *Reflector) consume(ctx context.Context, s *openWatch) error {
	resync, stopResync := r.resyncs.timer()
	defer func() { stopResync() }()
	checkTimer := r.options.Clock.NewTimer(worksAfter)
	defer checkTimer.Stop()
	s.heard = r.options.Clock.Now()
	for {
		select {
		case <-s.ctx.Done():
			r.place.waited()
			return ctx.Err() // nil if the watch only lasted too long
		case event, ok := <-s.watch.ResultChan():
			if !ok {
				return r.endOfStream(s)
			}
			if err := r.handle(s, event); err != nil {
				return err
			}
		case proof := <-r.timeline.proofs:
			if err := r.timeline.rollBack(ctx, proof); err != nil {
				return err
			}
			return errRolledBack
		case <-checkTimer.C():
			next, err := r.whenQuiet(ctx, s)
			if err != nil {
				return err
			}
			checkTimer.Reset(next)
		case <-resync:
			if err := r.resync(); err != nil {
				return err
			}
			stopResync()
			resync, stopResync = r.resyncs.timer()
		}
	}
}

// endOfStream returns errShortWatch for a clean end that came at once and without an event.
func (r *Reflector) endOfStream(s *openWatch) error {
	now := r.options.Clock.Now()
	r.place.at.ended(now)
	if s.events == 0 && now.Sub(s.asked) < shortWatch {
		return errShortWatch
	}
	return nil
}

// handle delivers one event to the store and, I1, only then moves the position.
func (r *Reflector) handle(s *openWatch, event watch.Event) error {
	if event.Type == watch.Error {
		r.place.waited()
		return inStream(fmt.Errorf("watch %s at resource version %s: %w",
			r.TypeDescription(), r.place.at.Newest, apierrors.FromObject(event.Object)))
	}
	object, err := r.delivery.expected.metadata(event.Object)
	if err != nil {
		return &failure{kind: poisonFailure, err: fmt.Errorf("watch %s: %s event after resource version %s: %w",
			r.TypeDescription(), event.Type, r.place.at.Newest, err)}
	}
	if err := r.works(s); err != nil {
		return err
	}
	s.events++
	if err := r.delivery.watched(event, sightingOf(event.Type, object)); err != nil {
		return err
	}
	s.heard = r.options.Clock.Now()
	return nil
}

// works notes that a watch has shown that it works.
func (r *Reflector) works(s *openWatch) error {
	if s.works {
		return nil
	}
	if err := r.health.works(); err != nil {
		return err
	}
	r.source.works()
	r.recoverer.works()
	s.works = true
	return nil
}

// whenQuiet handles a watch that may have been quiet for too long, and returns when to check again.
func (r *Reflector) whenQuiet(ctx context.Context, s *openWatch) (time.Duration, error) {
	heard := r.options.Clock.Since(s.heard)
	if heard < worksAfter {
		return worksAfter - heard, nil
	}
	if err := r.works(s); err != nil {
		return 0, err
	}
	if r.quiet.bookmarks && heard >= r.options.SilenceTimeout {
		r.place.waited()
		return 0, errSilent
	}
	if r.quiet.untilLook() <= 0 {
		if err := r.recoverer.lookIfQuiet(ctx); err != nil {
			return 0, err
		}
	}
	if r.quiet.bookmarks {
		return min(r.quiet.untilLook(), r.options.SilenceTimeout-heard), nil
	}
	return r.quiet.untilLook(), nil
}

// resync calls the store's Resync, on the goroutine that feeds it.
func (r *Reflector) resync() error {
	r.resyncs.begun()
	if r.ShouldResync != nil && !r.ShouldResync() {
		return nil
	}
	return r.delivery.out.resync()
}

// afterWatch decides what follows the end of a watch. It returns nil to go on at once, or an error to pause first.
func (r *Reflector) afterWatch(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, errRolledBack):
		return nil
	case kindOf(err) == storeFailure:
		return err
	case errors.Is(err, errSilent):
		r.source.useFresh = true
		return nil
	case isExpired(err):
		return r.afterExpiry(ctx, err)
	default:
		return err
	}
}

// afterExpiry first tries new connections, which may lead to an API server that still has the history. Then it tries to
// recover the history. If both fail, a list is due. If the list's own resource version has expired, a pause comes
// first, or lists and expiries would follow each other without end.
func (r *Reflector) afterExpiry(ctx context.Context, err error) error {
	if r.place.recorded() && r.source.tryFresh() {
		r.retries.pause(ctx, rand.N(freshPause))
		return ctx.Err() // The next watch checks the history first.
	}
	// A recovery compares two revisions of one history.
	if failed := r.timeline.check(ctx); failed != nil || r.timeline.rollbackProof != "" {
		return failed
	}
	recovered, failed := r.recoverer.recover(ctx, err)
	switch {
	case errors.Is(failed, errRolledBack):
		return nil // follow checks the history next, and lists.
	case recovered || failed != nil:
		return failed
	}
	r.lists.pending = &relist{cause: delta.CauseExpired, detail: err.Error()}
	if r.health.unproven {
		return err
	}
	return nil
}

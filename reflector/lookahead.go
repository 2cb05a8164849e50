package reflector

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/kuberewind/kuberewind/delta"
)

const (
	// lookaheadEvents bounds the events that are read of a watch while a list comes. PageBytes bounds their size.
	// Further events wait at the server.
	lookaheadEvents = 10_000
	// lookaheadPause is the shortest pause before the next watch, if a watch has ended during a list. The longest is
	// twice as much.
	lookaheadPause = time.Second
)

// lookahead reads the watch that follows a list while the list's pages still come, so that the server need not keep the
// history for so long. One goroutine reads. The owner must call handOver or discard, which wait for it.
type lookahead struct {
	from   *source
	clock  clock.Clock
	halt   chan struct{} // closed by the owner: read no further
	done   chan struct{} // closed by the goroutine at its end
	cancel context.CancelFunc

	// These belong to the goroutine until done is closed.
	at     cursor
	events []watch.Event
	bytes  int64
	open   *openWatch // nil if the watch has ended
	tried  bool       // a watch was opened or refused already
}

func lookAhead(ctx context.Context, from *source, resourceVersion string) *lookahead {
	ctx, cancel := context.WithCancel(ctx)
	l := &lookahead{
		from: from, clock: from.clock, halt: make(chan struct{}), done: make(chan struct{}), cancel: cancel,
		at: cursor{Position: delta.At(resourceVersion)},
	}
	go func() {
		defer close(l.done)
		l.run(ctx)
	}()
	return l
}

// handOver ends the reading. It returns the events, with the watch if it is still open.
func (l *lookahead) handOver() *openWatch {
	close(l.halt)
	<-l.done
	s := l.open
	if s == nil {
		l.cancel()
		return &openWatch{ahead: l.events}
	}
	s.ahead = l.events
	stopWatch := s.cancel
	s.cancel = func() { stopWatch(); l.cancel() }
	return s
}

// discard ends the reading and drops the events: their list was aborted.
func (l *lookahead) discard() {
	l.cancel()
	close(l.halt)
	<-l.done
	l.closeOpen(nil)
}

func (l *lookahead) run(ctx context.Context) {
	for l.bytes < l.from.pages.bytes && len(l.events) < lookaheadEvents {
		if l.open == nil && !l.reopen(ctx) {
			return
		}
		select {
		case <-l.halt:
			return
		case <-l.open.ctx.Done():
			l.closeOpen(ctx.Err())
		case event, ok := <-l.open.watch.ResultChan():
			if !l.take(event, ok) {
				return
			}
		}
	}
}

// reopen opens a watch at the end of the last one. It returns false if the server gives no further watch now: the
// reflector will find the reason.
func (l *lookahead) reopen(ctx context.Context) bool {
	for {
		if l.tried && !l.wait(ctx) {
			return false
		}
		l.tried = true
		s, err := l.from.open(ctx, l.at.Complete)
		if err == nil {
			l.open = s
			l.at.began()
			return true
		}
		if isExpired(err) || deniedCause(err) != "" || ctx.Err() != nil {
			return false
		}
	}
}

// take keeps one event, and returns false if reading must end with it.
func (l *lookahead) take(event watch.Event, ok bool) bool {
	if !ok {
		l.at.ended(l.clock.Now())
		l.closeOpen(nil)
		return true
	}
	if event.Type == watch.Error {
		l.at.ended(l.clock.Now())
		err := apierrors.FromObject(event.Object)
		l.closeOpen(err)
		return !isExpired(err)
	}
	l.events = append(l.events, event)
	l.bytes += sizeOf(event.Object)
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return false
	}
	l.at.saw(sightingOf(event.Type, object), l.clock.Now())
	return true
}

func (l *lookahead) closeOpen(err error) {
	if l.open != nil {
		l.from.close(l.open, err)
		l.open = nil
	}
}

// wait pauses between two watches, and returns false if reading must end.
func (l *lookahead) wait(ctx context.Context) bool {
	timer := l.clock.NewTimer(lookaheadPause + rand.N(lookaheadPause))
	defer timer.Stop()
	select {
	case <-l.halt:
		return false
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

package reflector

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// maxRetryAfter bounds what a server may ask for: an absurd Retry-After must
// not stop a stream for good.
const maxRetryAfter = 5 * time.Minute

// returnSpread is the time within which all streams come back to a server that
// has returned.
const returnSpread = time.Second

// delays are the growing pauses between retries. They start over when none was
// needed for backoffReset.
type delays struct {
	initial, current wait.Backoff
	over             time.Time // when the last pause was over
}

func newDelays(backoff wait.Backoff) *delays {
	return &delays{initial: backoff, current: backoff}
}

// reset has the next pause be a short one: there was progress.
func (d *delays) reset() { d.over = time.Time{} }

func (d *delays) next(now time.Time) time.Duration {
	if now.Sub(d.over) > backoffReset {
		d.current = d.initial
	}
	delay := d.current.Step()
	d.over = now.Add(delay)
	return delay
}

// retries spaces out what is tried again.
type retries struct {
	usual  *delays
	denied *delays // for what the server refuses
	left   *delays // for the list after a history was left
	clock  clock.Clock
}

func newRetries(options *Options) *retries {
	denied, left := *options.Backoff, *options.Backoff
	denied.Cap = options.ForbiddenRetry
	if left.Cap == 0 || left.Cap > leftRetry {
		left.Cap = leftRetry
	}
	return &retries{
		usual: newDelays(*options.Backoff), denied: newDelays(denied), left: newDelays(left), clock: options.Clock,
	}
}

// progress has the next pause be a short one.
func (t *retries) progress() { t.usual.reset() }

// delayAfter is how long to wait after an error, if a history was left or not.
// A server that names a time gets it, with jitter, so that not all streams come
// back at once.
func (t *retries) delayAfter(err error, left bool) time.Duration {
	delays := t.usual
	switch {
	case kindOf(err) == deniedFailure:
		delays = t.denied
	case left:
		delays = t.left
	}
	delay := delays.next(t.clock.Now())
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok || seconds <= 0 {
		return delay
	}
	asked := min(time.Duration(seconds)*time.Second, maxRetryAfter)
	return max(delay, asked+rand.N(asked/2+1))
}

// pause waits, or until the context ends.
func (t *retries) pause(ctx context.Context, delay time.Duration) { t.pauseUntil(ctx, delay, nil) }

// pauseUntil waits, or until the context ends or the server has returned. After
// a long absence most of a pause would still be ahead.
func (t *retries) pauseUntil(ctx context.Context, delay time.Duration, returned <-chan struct{}) {
	timer := t.clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-returned:
		t.progress()
		t.pause(ctx, min(delay, rand.N(returnSpread)))
	}
}

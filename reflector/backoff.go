package reflector

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
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

// delayAfter is how long to wait after an error. A server that names a time
// gets it, with jitter, so that not all streams come back at once.
func (r *Reflector) delayAfter(err error) time.Duration {
	delays := r.retry
	switch {
	case kindOf(err) == deniedFailure:
		delays = r.retryDenied
	case r.reversed != "":
		delays = r.retryLeft
	}
	delay := delays.next(r.clock.Now())
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok || seconds <= 0 {
		return delay
	}
	asked := min(time.Duration(seconds)*time.Second, maxRetryAfter)
	return max(delay, asked+rand.N(asked/2+1))
}

// pause waits, or until the context ends.
func (r *Reflector) pause(ctx context.Context, delay time.Duration) { r.pauseUntil(ctx, delay, nil) }

// pauseUntil waits, or until the context ends or the server has returned. After
// a long absence most of a pause would still be ahead.
func (r *Reflector) pauseUntil(ctx context.Context, delay time.Duration, returned <-chan struct{}) {
	timer := r.clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-returned:
		r.retry.reset()
		r.pause(ctx, min(delay, rand.N(returnSpread)))
	}
}

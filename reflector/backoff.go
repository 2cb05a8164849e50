package reflector

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// maxRetryAfter bounds the pause that a server may request: an absurd Retry-After must not stop a stream for good.
const maxRetryAfter = 5 * time.Minute

// returnSpread is the time within which all streams reconnect to a server that has returned.
const returnSpread = time.Second

// delays are the growing pauses between retries. If no pause was needed for backoffReset, they start over.
type delays struct {
	initial, current wait.Backoff
	over             time.Time // when the last pause was over
}

func newDelays(backoff wait.Backoff) *delays {
	return &delays{initial: backoff, current: backoff}
}

// reset makes the next pause short: there was progress.
func (d *delays) reset() { d.over = time.Time{} }

func (d *delays) next(now time.Time) time.Duration {
	if now.Sub(d.over) > backoffReset {
		d.current = d.initial
	}
	delay := d.current.Step()
	d.over = now.Add(delay)
	return delay
}

// retries computes the pauses between retries.
type retries struct {
	usual         *delays
	denied        *delays // if the server refuses
	afterRollback *delays // for the list after a rollback
	clock         clock.Clock
}

func newRetries(options *Options) *retries {
	denied, afterRollback := *options.Backoff, *options.Backoff
	denied.Cap = options.ForbiddenRetry
	if afterRollback.Cap == 0 || afterRollback.Cap > rollbackRetry {
		afterRollback.Cap = rollbackRetry
	}
	return &retries{
		usual: newDelays(*options.Backoff), denied: newDelays(denied), afterRollback: newDelays(afterRollback), clock: options.Clock,
	}
}

// progress makes the next pause short.
func (t *retries) progress() { t.usual.reset() }

// delayAfter returns how long to wait after an error. afterRollback says whether the list after a rollback is due. If the
// server names a time, the reflector waits that long, with jitter, so that not all streams come back at once.
func (t *retries) delayAfter(err error, afterRollback bool) time.Duration {
	delays := t.usual
	switch {
	case kindOf(err) == deniedFailure:
		delays = t.denied
	case afterRollback:
		delays = t.afterRollback
	}
	delay := delays.next(t.clock.Now())
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok || seconds <= 0 {
		return delay
	}
	asked := min(time.Duration(seconds)*time.Second, maxRetryAfter)
	return max(delay, asked+rand.N(asked/2+1))
}

// pause waits for the delay, or until the context ends.
func (t *retries) pause(ctx context.Context, delay time.Duration) { t.pauseUntil(ctx, delay, nil) }

// pauseUntil waits for the delay, or until the context ends or the server has returned. After a long absence, most of a
// pause would still be ahead.
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

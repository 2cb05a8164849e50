package rollback

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
)

// askedAtOnce bounds how many etcds are asked at once whether a stream is in them. Each costs three reads.
const askedAtOnce = 20

// sameEtcd reports whether two streams are kept in one etcd. I4: their resource versions may be compared if two
// lists of the one bracket a list of the other. A yes is remembered. A no is not: a stale cache may have caused it.
func sameEtcd(ctx context.Context, c, other *Stream, ask func(*asker, context.Context) (uint64, error)) (bool, error) {
	if knownSameEtcd(c, other) {
		return true, nil
	}
	var at [3]uint64
	for i, asked := range []*Stream{c, other, c} {
		var err error
		if at[i], err = ask(&asked.ask, ctx); err != nil {
			return false, &noAnswerError{asked, err}
		}
	}
	same := at[0] != 0 && at[0] <= at[1] && at[1] <= at[2]
	if same {
		join(c, other)
	}
	return same, nil
}

// noAnswerError says for which of two streams the server does not answer, so that it is not known whether they
// share an etcd.
type noAnswerError struct {
	stream *Stream
	err    error
}

func (e *noAnswerError) Error() string { return e.err.Error() }

func (e *noAnswerError) Unwrap() error { return e.err }

// noAnswerFor reports whether the error says that the server does not answer for the stream.
func noAnswerFor(c *Stream, err error) bool {
	e, ok := errors.AsType[*noAnswerError](err)
	return ok && e.stream == c
}

func knownSameEtcd(c, other *Stream) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.etcd == other.etcd
}

// join notes that two streams share an etcd, and with them all streams that are known to share it with either.
func join(c, other *Stream) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	merged := other.etcd
	if merged == c.etcd {
		return
	}
	c.etcd.mergeLocked(merged)
	for _, o := range c.all.streams {
		if o.etcd == merged {
			o.etcd = c.etcd
		}
	}
}

// inAnotherEtcd reports whether the stream is proved to be in another etcd than the others, which share one. The
// first of them for which the server answers decides. It returns an error if the server does not answer for the
// stream itself.
func inAnotherEtcd(ctx context.Context, c *Stream, others []*Stream) (bool, error) {
	for _, o := range others {
		same, err := sameEtcd(ctx, o, c, (*asker).etcdRevision)
		if err == nil {
			return !same, nil
		}
		if noAnswerFor(c, err) {
			return false, err
		}
	}
	_, err := c.ask.etcdRevision(ctx)
	return false, err
}

// findOtherEtcds returns the etcds that are proved to be others than the stream's. It asks all at once, because the
// server may hang for many.
func findOtherEtcds(ctx context.Context, c *Stream) map[*etcdState]bool {
	var mu sync.Mutex
	found := map[*etcdState]bool{}
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	for etcd, o := range onePerOtherEtcd(c) {
		asking.Go(func() error {
			same, err := sameEtcd(ctx, c, o, (*asker).etcdRevision)
			mu.Lock()
			defer mu.Unlock()
			found[etcd] = err == nil && !same
			return nil
		})
	}
	_ = asking.Wait()
	return found
}

// onePerOtherEtcd returns one stream of each etcd that is not known to be the stream's. The server can be asked
// about each of them.
func onePerOtherEtcd(c *Stream) map[*etcdState]*Stream {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	others := map[*etcdState]*Stream{}
	for _, o := range c.all.streams {
		if o.etcd != c.etcd && o.following.canAsk() && others[o.etcd] == nil {
			others[o.etcd] = o
		}
	}
	return others
}

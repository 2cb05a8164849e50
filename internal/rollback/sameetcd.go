package rollback

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
)

// askedAtOnce bounds how many etcds are asked at once whether a stream is in them, by three reads each.
const askedAtOnce = 20

// sameEtcd reports whether two streams are kept in one etcd. I4: their resource versions may be compared if a list of the one
// brackets lists of the other. That they do is remembered; that they do not may have been a stale cache.
func sameEtcd(ctx context.Context, c, other *Stream, now func(*asker, context.Context) (uint64, error)) (bool, error) {
	if knownSameEtcd(c, other) {
		return true, nil
	}
	var at [3]uint64
	for i, asked := range []*Stream{c, other, c} {
		var err error
		if at[i], err = now(&asked.ask, ctx); err != nil {
			return false, &noAnswerError{asked, err}
		}
	}
	same := at[0] != 0 && at[0] <= at[1] && at[1] <= at[2]
	if same {
		join(c, other)
	}
	return same, nil
}

// unanswered is why it is not known whether streams are together: the server does not answer for one of them.
type noAnswerError struct {
	stream *Stream
	err    error
}

func (e *noAnswerError) Error() string { return e.err.Error() }

func (e *noAnswerError) Unwrap() error { return e.err }

// unansweredFor reports whether it is the stream for which there is no answer.
func noAnswerFor(c *Stream, err error) bool {
	e, ok := errors.AsType[*noAnswerError](err)
	return ok && e.stream == c
}

func knownSameEtcd(c, other *Stream) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.etcd == other.etcd
}

// join notes that two streams are together, and with them all that are known to be with either.
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

// apartFrom reports whether the stream is proved to be in another etcd than others are. The first of them for which the server
// answers decides. The error is that it does not answer for the stream itself.
func inAnotherEtcd(ctx context.Context, c *Stream, others []*Stream) (bool, error) {
	for _, o := range others {
		same, err := sameEtcd(ctx, o, c, (*asker).trueNow)
		if err == nil {
			return !same, nil
		}
		if noAnswerFor(c, err) {
			return false, err
		}
	}
	_, err := c.ask.trueNow(ctx)
	return false, err
}

// elsewhere finds the etcds that are proved to be others than that of the stream. It asks all at once, because the server may
// hang for many.
func findOtherEtcds(ctx context.Context, c *Stream) map[*etcd]bool {
	var mu sync.Mutex
	found := map[*etcd]bool{}
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	for etcd, o := range onePerOtherEtcd(c) {
		asking.Go(func() error {
			same, err := sameEtcd(ctx, c, o, (*asker).trueNow)
			mu.Lock()
			defer mu.Unlock()
			found[etcd] = err == nil && !same
			return nil
		})
	}
	_ = asking.Wait()
	return found
}

// othersThan gives a stream that can be asked for of each etcd that is not known to be that of the stream.
func onePerOtherEtcd(c *Stream) map[*etcd]*Stream {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	others := map[*etcd]*Stream{}
	for _, o := range c.all.streams {
		if o.etcd != c.etcd && o.following.canAsk() && others[o.etcd] == nil {
			others[o.etcd] = o
		}
	}
	return others
}

package rollback

import (
	"context"
	"time"
)

const (
	// silentWait is how long a recovery waits for streams for which a restarted server does not answer yet. Without it, every other
	// stream would list each revision that they have claimed.
	silentWait = 20 * time.Second
	// silentPause is how long nobody asks again after there was no answer.
	silentPause = time.Second
)

// trusted gives, in order, the revisions that count of other streams in this etcd. They count as far as that etcd still has the history in
// which they were served: an etcd restored from a snapshot gives the same revisions to other writes.
func (c *Stream) trusted(ctx context.Context, from, to uint64, wait bool) ([]uint64, error) {
	together, err := c.togetherInTime(ctx, from, to, wait)
	if err != nil {
		return nil, err
	}
	proved, err := proved(ctx, together)
	if err != nil {
		return nil, err
	}
	return c.union(together, from, min(to, proved)), nil
}

// togetherInTime asks which streams are in this etcd, with wait until none with many claims is silent or silentWait is over.
func (c *Stream) togetherInTime(ctx context.Context, from, to uint64, wait bool) ([]*Stream, error) {
	began := time.Now()
	if err := c.tieFirst(ctx); err != nil {
		return nil, err
	}
	for {
		together, silent, err := c.together(ctx, from, to)
		if err != nil || !wait || len(c.union(silent, from, to)) <= fewLooks || time.Since(began) >= silentWait {
			return together, err
		}
		timer := time.NewTimer(silentPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// together gives the streams with claims that are in this etcd. The server does not answer for silent ones now, so nothing shows where they are.
func (c *Stream) together(ctx context.Context, from, to uint64) (together, silent []*Stream, err error) {
	for _, other := range c.claimants(from, to) {
		same, answered, err := c.askBeside(ctx, other)
		if err != nil {
			return nil, nil, err
		}
		if same {
			together = append(together, other)
		}
		if !answered && other.asks() {
			silent = append(silent, other)
		}
	}
	return together, silent, nil
}

// askBeside reports whether another stream is in this etcd, and whether the server has answered for that one. The error is that it does not answer for this one.
func (c *Stream) askBeside(ctx context.Context, other *Stream) (same, answered bool, err error) {
	if !other.mayBeAsked(c) {
		return false, false, nil
	}
	same, err = c.sameEtcd(ctx, other, (*asker).now)
	if c.silences(err) {
		return false, false, err
	}
	other.answers(err == nil)
	return same, err == nil, nil
}

// mayBeAsked reports whether the stream may be asked now in which etcd it is. While there is no answer, one of those who would ask does so each
// silentPause.
func (c *Stream) mayBeAsked(by *Stream) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	switch {
	case c.silent.IsZero(), c.etcd == by.etcd:
		return true
	case time.Since(c.silent) < silentPause:
		return false
	}
	c.silent = time.Now()
	return true
}

// answers notes whether there was an answer for the stream when it was asked.
func (c *Stream) answers(answered bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.silent = time.Now(); answered {
		c.silent = time.Time{}
	}
}

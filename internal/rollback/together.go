package rollback

import (
	"context"
	"errors"
)

// sameEtcd reports whether two streams are kept in one etcd. I4: their resource versions may be compared if a list of the one
// brackets lists of the other. That they do is remembered; that they do not may have been a stale cache.
func (c *Stream) sameEtcd(ctx context.Context, other *Stream, now func(*asker, context.Context) (uint64, error)) (bool, error) {
	if c.knownTogether(other) {
		return true, nil
	}
	var at [3]uint64
	for i, asked := range []*Stream{c, other, c} {
		var err error
		if at[i], err = now(&asked.ask, ctx); err != nil {
			return false, &unanswered{asked, err}
		}
	}
	same := at[0] != 0 && at[0] <= at[1] && at[1] <= at[2]
	if same {
		c.join(other)
	}
	return same, nil
}

// unanswered is why it is not known whether streams are together: the server does not answer for one of them.
type unanswered struct {
	of  *Stream
	err error
}

func (u *unanswered) Error() string { return u.err.Error() }

func (u *unanswered) Unwrap() error { return u.err }

// silences reports whether it is the stream for which there is no answer.
func (c *Stream) silences(err error) bool {
	u, ok := errors.AsType[*unanswered](err)
	return ok && u.of == c
}

func (c *Stream) knownTogether(other *Stream) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.etcd == other.etcd
}

// join notes that two streams are together, and with them all that are known to be with either.
func (c *Stream) join(other *Stream) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	taken := other.etcd
	if taken == c.etcd {
		return
	}
	c.etcd.takeInLocked(taken)
	for _, o := range c.all.streams {
		if o.etcd == taken {
			o.etcd = c.etcd
		}
	}
}

package rollback

import (
	"cmp"
	"context"
	"errors"
	"slices"
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
	return c.headLocked() == other.headLocked()
}

// join notes that two streams are together, and with them all that are known to be with either.
func (c *Stream) join(other *Stream) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if head, others := c.headLocked(), other.headLocked(); head != others {
		others.cohort = head
		trail := append(head.trail, others.trail...)
		slices.SortFunc(trail, func(a, b footprint) int { return a.at.Compare(b.at) })
		head.trail, others.trail = shortened(trail), nil
		if o := others.last; o.of != nil && o.standsLocked() && (o.revision > head.last.revision || !head.last.standsLocked()) {
			head.last = o
		}
		if others.heard.After(head.heard) {
			head.heard = others.heard
		}
		settled := slices.DeleteFunc(append(head.settled, others.settled...), func(s sample) bool { return !s.standsLocked() })
		slices.SortFunc(settled, func(a, b sample) int { return a.recorded.Compare(b.recorded) })
		head.settled = slices.Delete(settled, 0, max(0, len(settled)-keptSettled))
		head.base = cmp.Or(head.base, others.base)
		others.last, others.settled, others.settling, others.base = sample{}, nil, sample{}, 0
	}
}

// headLocked is the one of its cohort that refers to nobody.
func (c *Stream) headLocked() *Stream {
	for c.cohort != nil {
		c = c.cohort
	}
	return c
}

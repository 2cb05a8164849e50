package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/patch"
)

const (
	// trailEvery is how often one of the versions that an etcd's streams are served is noted, so that it can be said afterwards up to where
	// a history that went backwards is still the same; trailLength of them are kept: a minute of a busy cluster, some hundred bytes each.
	trailEvery  = 100 * time.Millisecond
	trailLength = 600
)

// footprint is a version that was served when it was new.
type footprint struct {
	of *claims
	witness
	at       time.Time // when it was served
	recorded time.Time // the same by the clock of the record
}

// noteLocked adds a version to the trail of its etcd.
func (c *claims) noteLocked(w witness) {
	head, now := c.headLocked(), time.Now()
	if c.reversed || c.told < len(c.all.reversals) || now.Sub(head.noted) < trailEvery {
		return
	}
	head.noted = now
	head.trail = append(head.trail, footprint{c, w.reduced(), now, c.all.now()})
	if len(head.trail) > trailLength {
		head.trail = slices.Delete(head.trail, 0, 1)
	}
}

// writtenAt is what of an object's metadata tells when it was written; see sameMetadata.
type writtenAt struct {
	Created  json.RawMessage  `json:"creationTimestamp,omitempty"`
	Deleted  json.RawMessage  `json:"deletionTimestamp,omitempty"`
	Number   json.RawMessage  `json:"generation,omitempty"`
	Managers []writtenManager `json:"managedFields,omitempty"`
}

type writtenManager struct {
	Time *metav1.Time `json:"time,omitempty"`
}

// reduced is the witness without what need not be kept in memory.
func (w witness) reduced() witness {
	var kept struct {
		Metadata writtenAt `json:"metadata"`
	}
	doc := w.doc()
	w.doc = nil
	if doc == nil || json.Unmarshal(doc, &kept) != nil {
		return w
	}
	if text, err := json.Marshal(kept); err == nil {
		w.doc = func() patch.Doc { return text }
	}
	return w
}

// parted is where a history that went backwards has parted from the one on record.
type parted struct {
	// trail is what was served, in order, and from is a place in it: what stands there and is still in etcd is of the new history.
	trail []footprint
	from  int

	mu    sync.Mutex // protects what follows; held while asking
	known bool
	// common is the newest version before that place that is in etcd, and last the newest of all that are known not to be; zero where there is
	// none.
	common, last footprint
}

// partLocked takes what was served of an etcd, when a revision turns out to be of a history that is no more.
func (c *claims) partLocked(revision uint64) *parted {
	head := c.headLocked()
	p := &parted{trail: head.trail}
	head.trail = nil
	slices.SortFunc(p.trail, func(a, b footprint) int { return cmp.Compare(a.revision, b.revision) })
	p.from, _ = slices.BinarySearchFunc(p.trail, revision, func(f footprint, of uint64) int { return cmp.Compare(f.revision, of) })
	return p
}

// where asks etcd, once, up to where the histories are the same, and up to where what was served is of the old one: it holds nothing between.
func (p *parted) where(ctx context.Context) (common, last footprint, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return p.common, p.last, nil
	}
	shared, err := holds(ctx, p.trail[:p.from], func(what sight) bool { return what != same })
	if err != nil {
		return common, last, err
	}
	lost, err := holds(ctx, p.trail[p.from:], func(what sight) bool { return what == same })
	if err != nil {
		return common, last, err
	}
	if shared > 0 {
		p.common = p.trail[shared-1]
	}
	if shared < p.from+lost {
		p.last = p.trail[p.from+lost-1]
	}
	p.known = true
	return p.common, p.last, nil
}

// holds gives how many versions, from the first on, come before those of which etcd says that they are beyond.
func holds(ctx context.Context, trail []footprint, beyond func(sight) bool) (int, error) {
	low, high := 0, len(trail)
	for low < high {
		middle := (low + high) / 2
		f := trail[middle]
		what, err := f.of.look(ctx, f.witness, f.revision)
		if err != nil {
			return 0, err
		}
		if beyond(what) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, nil
}

// servedUntil says up to where, and when, what was served is known to be of the history that the stream has left; empty where it is not.
func (c *claims) servedUntil() (resourceVersion string, at time.Time) {
	c.all.mu.Lock()
	p := c.parted
	c.all.mu.Unlock()
	if p == nil {
		return "", at
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.of == nil {
		return "", at
	}
	return strconv.FormatUint(p.last.revision, 10), p.last.recorded
}

package rollback

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// witness is a version of an object that was served. As long as it is the newest of its object, etcd has it at each later revision
// of the history in which it was written.
type witness struct {
	revision        uint64
	deleted         bool // it is the end of the object: etcd has nothing of that name at the revision
	namespace, name string
	uid             types.UID
	// doc is the version as recorded; it gives nil where it is not.
	doc func() patch.Doc
	at  time.Time // when it was served, zero if a list or the record has it
}

// witnesses is how many living objects are remembered of a stream: the newest may be deleted.
const witnesses = 3

func witnessOf(o *kube.Object, revision uint64) witness {
	return witness{revision: revision, namespace: o.Namespace, name: o.Name, uid: o.UID, doc: o.Doc}
}

// living are the newest versions of living objects, in order: some of them.
type living []witness

// remember puts the newest version of an object in the place of an older one, or, if that was its end, forgets it.
func (l *living) remember(w witness, deleted bool) {
	all := slices.DeleteFunc(*l, func(other witness) bool { return other.namespace == w.namespace && other.name == w.name })
	if !deleted {
		all = append(all, w)
		slices.SortStableFunc(all, func(a, b witness) int { return cmp.Compare(a.revision, b.revision) })
		all = all[max(0, len(all)-witnesses):]
	}
	*l = all
}

// show remembers what a page of a list holds.
func (l *living) show(page []any) {
	for _, item := range page {
		if o, ok := item.(*kube.Object); ok {
			if revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64); err == nil {
				l.remember(witnessOf(o, revision), false)
			}
		}
	}
}

// newest is the zero witness where no object is known to live.
func (l living) newest() witness {
	if len(l) == 0 {
		return witness{}
	}
	return l[len(l)-1]
}

// Recall takes over what the record holds, which is complete up to a position: what lives, and the newest revisions that were the stream's.
func (c *Stream) Recall(known *postgres.Known, position string, newest []string) {
	at, err := strconv.ParseUint(position, 10, 64)
	if err != nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.earlier = append(c.earlier, c.all.rollbacks...)
	c.position, c.resumed, c.begin, c.since = at, at, at, c.all.now()
	if taken := c.all.taken; !taken.IsZero() {
		c.since = taken.Add(-postgres.UnprovenFor)
	}
	for _, rv := range newest {
		if revision, err := strconv.ParseUint(rv, 10, 64); err == nil {
			c.recorded = max(c.recorded, revision)
			c.claimLocked(revision)
		}
	}
	for _, key := range known.ListKeys() {
		object, ok, _ := known.GetByKey(key)
		if !ok {
			continue
		}
		o := object.(postgres.KnownObject)
		if revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64); err == nil {
			c.recorded = max(c.recorded, revision)
			c.living.remember(witness{revision: revision, namespace: o.GetNamespace(), name: o.GetName(), uid: o.GetUID(), doc: o.Doc}, false)
		}
	}
	c.sampleRecalledLocked()
}

// sampleRecalledLocked has the probes look at the newest living object on record. When it was served is not known.
func (c *Stream) sampleRecalledLocked() {
	c.sampleNewestLocked(&sample{footprint: footprint{of: c, witness: c.living.newest(), history: c.history}, listed: c.position, recalled: true})
}

// RecallAnew takes over that the stream has left the history on record, and was listed since, up to a position.
func (c *Stream) RecallAnew(position string) {
	c.all.mu.Lock()
	c.due, c.earlier = samples{}, nil
	c.all.mu.Unlock()
	c.Recall(&postgres.Known{}, position, nil)
}

// Listing notes that a list begins: what lives is what it shows.
func (c *Stream) Listing(cause delta.Cause) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.living, c.lists, c.began = nil, true, c.all.now()
	c.leftThen, c.anew = c.reversed, c.reversed || cause == delta.CauseHistoryReversed
	if cause == delta.CauseHistoryReversed {
		if !c.reversed {
			c.history++ // It is the list that shows it.
			c.etcd.base = 0
		}
		c.forgetLocked()
	}
}

// Follow says how the stream is told that its history is no more.
func (c *Stream) Follow(reverse func(proof string)) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.reverse = reverse
}

// HasLeft reports whether the stream has left a history that is no more, and was not listed since.
func (c *Stream) HasLeft() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.reversed
}

// reachedTo is where the stream is or, where a list is due whatever the history is, was; empty where that was nowhere, or in a history that is no more.
func (c *Stream) reachedTo() string {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.position == 0 || c.reversed {
		return ""
	}
	return strconv.FormatUint(c.position, 10)
}

// Shown notes what a page of a list holds.
func (c *Stream) Shown(page []any) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.living.show(page)
}

// Listed notes that the list of a resource version is complete. If the stream has left its history meanwhile, it has to be
// listed again. The newest version that it shows is looked at as if it was served now.
func (c *Stream) Listed(resourceVersion string) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.lists = false
	if c.reversed && !c.leftThen {
		return
	}
	c.reversed = false
	c.until, c.earlier = deltafifo.Until{}, nil
	c.trust.listedLocked(c.anew)
	if c.anew {
		c.recorded, c.resumed = 0, 0 // The record is of the other history.
	}
	if c.anew || c.since.IsZero() {
		c.begin, c.since = 0, c.began
	}
	if revision, err := strconv.ParseUint(resourceVersion, 10, 64); err == nil {
		s := &sample{footprint: c.footprintLocked(c.living.newest(), time.Now()), listed: revision}
		s.recorded = c.began // What the list holds is not newer.
		c.sampleNewestLocked(s)
	}
}

// sampleNewestLocked has the probes look at the newest living object, if there is one, until there is an answer.
func (c *Stream) sampleNewestLocked(s *sample) {
	if s.name != "" {
		s.due, s.witness = true, s.reduced()
		c.due.add(s, keptDue)
	}
}

// footprint is a version that was served when it was new.
type footprint struct {
	of       *Stream
	witness            // with when it was served
	recorded time.Time // the same by the clock of the record
	history  int       // in which of its histories the stream was
}

func (c *Stream) footprintLocked(w witness, at time.Time) footprint {
	w.at = at
	return footprint{c, w, c.all.now(), c.history}
}

// step tells footprints apart.
type step struct {
	of       *Stream
	revision uint64
}

func (f footprint) step() step { return step{f.of, f.revision} }

package rollback

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// Three facts decide whether a list after a rollback is trusted:
//
//   - the newest version that both histories share,
//   - since when all that was served is certainly of the new history,
//   - the noted versions, with which the first two are found.
//
// This file has all three, and the search.

// trust holds what must be shown before a list of a rolled back stream is trusted. Streams.mu protects it.
type trust struct {
	window      cacheWindow   // how far back the server's cache can be watched
	cacheCheck  *cacheCheck   // what the cache must show; nil for nothing
	lostVersion servedVersion // the version that was served and is no longer in etcd
	finder      *Stream       // the stream that proved the rollback, if its etcd may be another one
}

// newCacheCheckLocked returns what the cache must show if the stream is rolled back now. It returns nil if no
// earlier recorder has followed the stream in its present history, and no watch of it was accepted. Then nothing shows
// that the cache is old.
func newCacheCheckLocked(c *Stream, f *fork) *cacheCheck {
	c.trust.window.noteAccepted(c.following.openedAt)
	switch {
	case c.trust.window.acceptedRevision != 0:
		check := newCacheCheck(c.trust.window, max(c.progress.newestKnown(), c.living.newest().revision), f)
		check.onRecord = c.progress.onRecord
		return check
	case c.progress.onRecord:
		return recalledCacheCheck(c.progress.newestKnown())
	}
	return nil
}

// rolledBackLocked notes that the stream was rolled back.
func (t *trust) rolledBackLocked(check *cacheCheck) {
	t.cacheCheck, t.lostVersion = check, servedVersion{}
}

// listedLocked notes that a trusted list is complete. afterRollback says that it is the list after a rollback.
func (t *trust) listedLocked(afterRollback bool) {
	t.cacheCheck, t.finder = nil, nil
	if afterRollback {
		t.window = cacheWindow{openedRevision: t.window.openedRevision} // The watch may be open already.
	}
}

const (
	// ringLength bounds the observations in the history ring of an etcd, some hundred bytes each. After a rollback,
	// they show up to where the two histories are the same. Once the ring is half full, it takes one observation
	// each ringEvery. Together that is a minute of a busy cluster.
	ringLength = 600
	ringEvery  = 100 * time.Millisecond
)

// historyRing holds some of the versions that an etcd's streams were served, in the order of time. It drops the
// oldest.
type historyRing struct {
	versions []observation
	newestAt time.Time // when the newest of them was served
}

// wantsNext reports whether the ring takes the next version.
func (r *historyRing) wantsNext() bool {
	return len(r.versions) < ringLength/2 || time.Since(r.newestAt) >= ringEvery
}

// add adds a version that was served just now.
func (r *historyRing) add(o observation) {
	r.newestAt, r.versions = o.at, shortened(append(r.versions, o))
}

// merge adds the versions of another ring.
func (r *historyRing) merge(other historyRing) {
	r.versions = append(r.versions, other.versions...)
	slices.SortFunc(r.versions, func(a, b observation) int { return a.at.Compare(b.at) })
	r.versions = shortened(r.versions)
}

// clear drops all versions.
func (r *historyRing) clear() { r.versions = nil }

// shortened drops the oldest versions of a ring that is too long.
func shortened(versions []observation) []observation {
	return slices.Delete(versions, 0, max(0, len(versions)-ringLength))
}

// fork is the point where the history of an etcd that was put back and its present history part. It is searched
// when a list is to be trusted.
type fork struct {
	observed    []observation // what the streams of that etcd were served before the rollback was found
	oldRevision uint64        // a revision of the old history that no other history has
	servedHere  bool          // this process was served that revision

	asking sync.Mutex // held while etcd is asked
	found  *forkPoint
}

// forkPoint is what the search has found.
type forkPoint struct {
	// common is the newest served version that both histories certainly have; zero if there is none.
	common observation
	// newSince is the time from which all served versions are certainly of the new history. It is zero if this
	// process was served nothing that may be of the old one.
	newSince time.Time
}

// nothingOld reports whether this process was served nothing that may be of the old history.
func (p *forkPoint) nothingOld() bool { return p.newSince.IsZero() }

// isNew reports whether the versions that were served at that time are certainly of the new history.
func (p *forkPoint) isNew(at time.Time) bool { return !at.Before(p.newSince) }

// shared returns the newest revision that both histories certainly have, and when it was served.
func (p *forkPoint) shared() (revision uint64, at time.Time) { return p.common.revision, p.common.at }

// newFork keeps the observations of an etcd for the search. If the etcd is not proved to be the one of the
// evidence, the revision of the evidence says nothing about it.
func newFork(ring historyRing, e evidence, proved bool) *fork {
	f := &fork{oldRevision: math.MaxUint64, observed: slices.DeleteFunc(slices.Clone(ring.versions), func(o observation) bool { return o.historyNumber != o.stream.history.number })}
	if proved {
		f.oldRevision, f.servedHere = e.oldRevision, e.servedHere
	}
	return f
}

// find searches the fork once, and keeps the result. If the server answers for no observed stream, the next call
// searches again.
func (f *fork) find(ctx context.Context) (forkPoint, error) {
	f.asking.Lock()
	defer f.asking.Unlock()
	if f.found != nil {
		return *f.found, nil
	}
	p, answered, err := f.locate(ctx)
	if err == nil && answered {
		f.found = &p
	}
	return p, err
}

// newestBefore returns the newest revision that was served before a time, 0 if there is none.
func (f *fork) newestBefore(at time.Time) (newest uint64) {
	for _, o := range f.observed {
		if o.at.Before(at) {
			newest = max(newest, o.revision)
		}
	}
	return newest
}

// locate asks etcd where the histories part. If etcd has compacted one revision, it has compacted all before it.
func (f *fork) locate(ctx context.Context) (p forkPoint, answered bool, err error) {
	observed := slices.SortedFunc(slices.Values(f.observed), func(a, b observation) int { return cmp.Compare(a.revision, b.revision) })
	observed = slices.CompactFunc(observed, func(a, b observation) bool { return a.key() == b.key() })
	s := search{unanswered: map[*Stream]bool{}}
	newSince, servedOld := time.Now(), f.servedHere
	from, _ := slices.BinarySearchFunc(observed, f.oldRevision, func(o observation, revision uint64) int { return cmp.Compare(o.revision, revision) })
	err = s.bisect(ctx, observed[:from], func(o observation, result lookResult) bool {
		if result == match {
			p.common = o
		}
		servedOld = servedOld || result == mismatch || result == future
		return result == mismatch || result == future
	})
	if err != nil {
		return p, false, err
	}
	// From the revision of the evidence on, a version that etcd holds is of the new history.
	err = s.bisect(ctx, observed[from:], func(o observation, result lookResult) bool {
		if result == match {
			newSince = o.at
		}
		servedOld = servedOld || result != match
		return result == match
	})
	// A version without an answer may be of the old history.
	if servedOld || slices.ContainsFunc(observed, func(o observation) bool { return s.unanswered[o.stream] }) {
		p.newSince = newSince
	}
	return p, s.answered || len(s.unanswered) == 0, err
}

// search asks etcd about observations.
type search struct {
	answered   bool             // the server has answered for some stream
	unanswered map[*Stream]bool // the streams for which the server does not answer now, or cannot be asked
}

// bisect checks the middle observation, and goes on with one half, until none is left. visit says whether to go on
// with the older half. bisect skips the observations of an unanswered stream. It returns an error only if ctx has
// ended.
func (s *search) bisect(ctx context.Context, observed []observation, visit func(observation, lookResult) (older bool)) error {
	for len(observed) > 0 {
		middle := len(observed) / 2
		o := observed[middle]
		result, err := s.look(ctx, o)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case s.unanswered[o.stream]:
			if err != nil {
				s.noteUnanswered(ctx, observed)
			}
			observed = slices.DeleteFunc(slices.Clone(observed), func(other observation) bool { return s.unanswered[other.stream] })
		case visit(o, result):
			observed = observed[:middle]
		default:
			observed = observed[middle+1:]
		}
	}
	return nil
}

// noteUnanswered finds out for which other streams the server does not answer either. It asks for all at once,
// because the server may hang for many.
func (s *search) noteUnanswered(ctx context.Context, observed []observation) {
	var others []*Stream
	for _, o := range observed {
		if !s.unanswered[o.stream] && !slices.Contains(others, o.stream) {
			others = append(others, o.stream)
		}
	}
	unanswered, _ := findUnanswered(ctx, others)
	for c, is := range unanswered {
		s.unanswered[c] = is
	}
}

// look checks an observation. If the server did not answer for its stream before, look does not ask again.
func (s *search) look(ctx context.Context, o observation) (result lookResult, err error) {
	if s.unanswered[o.stream] || !canAsk(o.stream) {
		s.unanswered[o.stream] = true
		return inconclusive, nil
	}
	result, err = o.stream.ask.look(ctx, o.servedVersion, o.revision)
	s.unanswered[o.stream], s.answered = err != nil, s.answered || err == nil
	return result, err
}

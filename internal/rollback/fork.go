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
//   - since when the new history was served for certain,
//   - the versions that were noted to find these two.
//
// This file has all three, and the search.

const (
	// trailLength bounds the noted versions of those that an etcd's streams are served, some hundred bytes each. They show
	// afterwards up to where a history that went backwards is still the same. Once half of them are noted, one is noted every
	// trailEvery: together a minute of a busy cluster.
	ringLength = 600
	ringEvery  = 100 * time.Millisecond
)

// trail is what was served of an etcd, in order of time: some of it.
type historyRing struct {
	versions []observation
	newest   time.Time // when the newest of it was
}

// due reports whether the next version is to be noted.
func (r *historyRing) wantsNext() bool {
	return len(r.versions) < ringLength/2 || time.Since(r.newest) >= ringEvery
}

// note adds a version that was served just now.
func (r *historyRing) add(o observation) {
	r.newest, r.versions = o.at, shortened(append(r.versions, o))
}

// mix adds what another trail has.
func (r *historyRing) merge(other historyRing) {
	r.versions = append(r.versions, other.versions...)
	slices.SortFunc(r.versions, func(a, b observation) int { return a.at.Compare(b.at) })
	r.versions = shortened(r.versions)
}

// forget drops all of it.
func (r *historyRing) clear() { r.versions = nil }

// shortened drops the oldest of a trail that is too long.
func shortened(versions []observation) []observation {
	return slices.Delete(versions, 0, max(0, len(versions)-ringLength))
}

// A fork is where the history of an etcd that was put back has parted from the one that there is now. It is searched when a list
// is to be trusted.
type fork struct {
	observed   []observation // what that etcd had served before the rollback was found
	at         uint64        // a revision of the old history that is in no other
	servedHere bool          // it was served to this process

	asking sync.Mutex // held while etcd is asked
	found  *forkPoint
}

// parted is what is known of a fork.
type forkPoint struct {
	// common is the newest version that was served and is known to be in both histories; zero if there is none.
	common observation
	// until is when what was served began to be of the new history for certain. It is zero if this process was served nothing
	// that may be of the old one.
	newSince time.Time
}

// nothingOld reports whether this process was served nothing that may be of the old history.
func (p *forkPoint) nothingOld() bool { return p.newSince.IsZero() }

// isNew reports whether what was served at a moment is of the new history for certain.
func (p *forkPoint) isNew(at time.Time) bool { return !at.Before(p.newSince) }

// shared is the newest revision that is known to be in both histories, and when it was served.
func (p *forkPoint) shared() (revision uint64, at time.Time) { return p.common.revision, p.common.at }

// forkOf takes what an etcd has served for the search of the fork. If it is not known to be the etcd of the evidence, the
// revision in that says nothing of it.
func newFork(ring historyRing, e evidence, proved bool) *fork {
	f := &fork{at: math.MaxUint64, observed: slices.DeleteFunc(slices.Clone(ring.versions), func(o observation) bool { return o.history != o.stream.history.number })}
	if proved {
		f.at, f.servedHere = e.at, e.servedHere
	}
	return f
}

// forkBefore is a fork of which only one thing is known: what was served until a moment may be of the old history.
func forkBefore(at time.Time) *fork { return &fork{found: &forkPoint{newSince: at}} }

// find searches the fork, once. If the server answers for none of the streams that were served something, it is searched again
// the next time.
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

// newestBefore is the newest revision that was served before a moment, 0 if nothing was.
func (f *fork) newestBefore(at time.Time) (newest uint64) {
	for _, o := range f.observed {
		if o.at.Before(at) {
			newest = max(newest, o.revision)
		}
	}
	return newest
}

// part asks etcd where the histories have parted. What etcd has forgotten is older than what it has not.
func (f *fork) locate(ctx context.Context) (p forkPoint, answered bool, err error) {
	observed := slices.SortedFunc(slices.Values(f.observed), func(a, b observation) int { return cmp.Compare(a.revision, b.revision) })
	observed = slices.CompactFunc(observed, func(a, b observation) bool { return a.key() == b.key() })
	s := search{unanswered: map[*Stream]bool{}}
	newSince, servedOld := time.Now(), f.servedHere
	from, _ := slices.BinarySearchFunc(observed, f.at, func(o observation, revision uint64) int { return cmp.Compare(o.revision, revision) })
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
	// What is in etcd there is of the new history.
	err = s.bisect(ctx, observed[from:], func(o observation, result lookResult) bool {
		if result == match {
			newSince = o.at
		}
		servedOld = servedOld || result != match
		return result == match
	})
	// What nobody answers for may be of the old one.
	if servedOld || slices.ContainsFunc(observed, func(o observation) bool { return s.unanswered[o.stream] }) {
		p.newSince = newSince
	}
	return p, s.answered || len(s.unanswered) == 0, err
}

// search is for what etcd says of a trail.
type search struct {
	answered   bool             // for some stream
	unanswered map[*Stream]bool // those for which the server does not answer now, or cannot be asked
}

// halve halves a trail until nothing is left of it: visit says whether to go on with what is older. What was served of a silent stream is left out. The error
// is that ctx has ended.
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

// hush finds out which others are silent, all at once, when one is: the server may hang for many.
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

// look asks for a stream until it is silent.
func (s *search) look(ctx context.Context, o observation) (result lookResult, err error) {
	if s.unanswered[o.stream] || !o.stream.canAsk() {
		s.unanswered[o.stream] = true
		return inconclusive, nil
	}
	result, err = o.stream.ask.look(ctx, o.servedVersion, o.revision)
	s.unanswered[o.stream], s.answered = err != nil, s.answered || err == nil
	return result, err
}

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
	trailLength = 600
	trailEvery  = 100 * time.Millisecond
)

// trail is what was served of an etcd, in order of time: some of it.
type trail struct {
	versions []footprint
	noted    time.Time // when the newest of it was
}

// due reports whether the next version is to be noted.
func (t *trail) due() bool {
	return len(t.versions) < trailLength/2 || time.Since(t.noted) >= trailEvery
}

// note adds a version that was served just now.
func (t *trail) note(f footprint) {
	t.noted, t.versions = f.at, shortened(append(t.versions, f))
}

// mix adds what another trail has.
func (t *trail) mix(other trail) {
	t.versions = append(t.versions, other.versions...)
	slices.SortFunc(t.versions, func(a, b footprint) int { return a.at.Compare(b.at) })
	t.versions = shortened(t.versions)
}

// forget drops all of it.
func (t *trail) forget() { t.versions = nil }

// shortened drops the oldest of a trail that is too long.
func shortened(trail []footprint) []footprint {
	return slices.Delete(trail, 0, max(0, len(trail)-trailLength))
}

// A fork is where the history of an etcd that was put back has parted from the one that there is now. It is searched when a list
// is to be trusted.
type fork struct {
	trail  []footprint // what that etcd had served before the rollback was found
	at     uint64      // a revision of the old history that is in no other
	served bool        // it was served to this process

	asking sync.Mutex // held while etcd is asked
	found  *parted
}

// parted is what is known of a fork.
type parted struct {
	// common is the newest version that was served and is known to be in both histories; zero if there is none.
	common footprint
	// until is when what was served began to be of the new history for certain. It is zero if this process was served nothing
	// that may be of the old one.
	until time.Time
}

// nothingOld reports whether this process was served nothing that may be of the old history.
func (p *parted) nothingOld() bool { return p.until.IsZero() }

// isNew reports whether what was served at a moment is of the new history for certain.
func (p *parted) isNew(at time.Time) bool { return !at.Before(p.until) }

// shared is the newest revision that is known to be in both histories, and when it was served.
func (p *parted) shared() (revision uint64, at time.Time) { return p.common.revision, p.common.at }

// forkOf takes what an etcd has served for the search of the fork. If it is not known to be the etcd of the evidence, the
// revision in that says nothing of it.
func forkOf(t trail, e evidence, proved bool) *fork {
	f := &fork{at: math.MaxUint64, trail: slices.DeleteFunc(slices.Clone(t.versions), func(f footprint) bool { return f.history != f.of.history.number })}
	if proved {
		f.at, f.served = e.at, e.served
	}
	return f
}

// forkBefore is a fork of which only one thing is known: what was served until a moment may be of the old history.
func forkBefore(at time.Time) *fork { return &fork{found: &parted{until: at}} }

// find searches the fork, once. If the server answers for none of the streams that were served something, it is searched again
// the next time.
func (f *fork) find(ctx context.Context) (parted, error) {
	f.asking.Lock()
	defer f.asking.Unlock()
	if f.found != nil {
		return *f.found, nil
	}
	p, answered, err := f.part(ctx)
	if err == nil && answered {
		f.found = &p
	}
	return p, err
}

// newestBefore is the newest revision that was served before a moment, 0 if nothing was.
func (f *fork) newestBefore(at time.Time) (newest uint64) {
	for _, f := range f.trail {
		if f.at.Before(at) {
			newest = max(newest, f.revision)
		}
	}
	return newest
}

// part asks etcd where the histories have parted. What etcd has forgotten is older than what it has not.
func (f *fork) part(ctx context.Context) (p parted, answered bool, err error) {
	trail := slices.SortedFunc(slices.Values(f.trail), func(a, b footprint) int { return cmp.Compare(a.revision, b.revision) })
	trail = slices.CompactFunc(trail, func(a, b footprint) bool { return a.step() == b.step() })
	s := search{silent: map[*Stream]bool{}}
	first, older := time.Now(), f.served
	from, _ := slices.BinarySearchFunc(trail, f.at, func(f footprint, of uint64) int { return cmp.Compare(f.revision, of) })
	err = s.halve(ctx, trail[:from], func(f footprint, what sight) bool {
		if what == same {
			p.common = f
		}
		older = older || what == other || what == ahead
		return what == other || what == ahead
	})
	if err != nil {
		return p, false, err
	}
	// What is in etcd there is of the new history.
	err = s.halve(ctx, trail[from:], func(f footprint, what sight) bool {
		if what == same {
			first = f.at
		}
		older = older || what != same
		return what == same
	})
	// What nobody answers for may be of the old one.
	if older || slices.ContainsFunc(trail, func(f footprint) bool { return s.silent[f.of] }) {
		p.until = first
	}
	return p, s.answered || len(s.silent) == 0, err
}

// search is for what etcd says of a trail.
type search struct {
	answered bool             // for some stream
	silent   map[*Stream]bool // those for which the server does not answer now, or cannot be asked
}

// halve halves a trail until nothing is left of it: visit says whether to go on with what is older. What was served of a silent stream is left out. The error
// is that ctx has ended.
func (s *search) halve(ctx context.Context, trail []footprint, visit func(footprint, sight) (older bool)) error {
	for len(trail) > 0 {
		middle := len(trail) / 2
		f := trail[middle]
		what, err := s.look(ctx, f)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case s.silent[f.of]:
			if err != nil {
				s.hush(ctx, trail)
			}
			trail = slices.DeleteFunc(slices.Clone(trail), func(other footprint) bool { return s.silent[other.of] })
		case visit(f, what):
			trail = trail[:middle]
		default:
			trail = trail[middle+1:]
		}
	}
	return nil
}

// hush finds out which others are silent, all at once, when one is: the server may hang for many.
func (s *search) hush(ctx context.Context, trail []footprint) {
	var others []*Stream
	for _, f := range trail {
		if !s.silent[f.of] && !slices.Contains(others, f.of) {
			others = append(others, f.of)
		}
	}
	silent, _ := askAll(ctx, others)
	for c, is := range silent {
		s.silent[c] = is
	}
}

// look asks for a stream until it is silent.
func (s *search) look(ctx context.Context, f footprint) (what sight, err error) {
	if s.silent[f.of] || !f.of.asks() {
		s.silent[f.of] = true
		return unknown, nil
	}
	what, err = f.of.ask.look(ctx, f.witness, f.revision)
	s.silent[f.of], s.answered = err != nil, s.answered || err == nil
	return what, err
}

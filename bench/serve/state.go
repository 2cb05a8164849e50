package serve

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// state is how far the history was written, and what lives now.
type state struct {
	resources []*resource
	first     uint64  // resource version of the beginning
	rate      float64 // events a second; 0 is as fast as they are read
	window    int
	gate      int // number of the event that waits for the second begin, and all after it; 0 is none

	mu      sync.Mutex // protects what follows
	began   time.Time  // zero until Go
	open    bool       // the gate is
	written []int      // by resource: frames
	watched []int      // by resource: how many watches there are
	newest  uint64     // resource version that was written last
	living  []map[int32]bool
	times   [][]int64     // by resource and frame: when it was written, or, at a rate, was due, in nanoseconds since 1970
	changed chan struct{} // closed and replaced with each change
}

func newState(resources []*resource, first uint64, o Options) *state {
	s := &state{resources: resources, first: first, rate: o.Rate, window: o.Window, gate: o.Gate, newest: first, changed: make(chan struct{})}
	n := len(resources)
	s.written, s.watched, s.living, s.times = make([]int, n), make([]int, n), make([]map[int32]bool, n), make([][]int64, n)
	for i, r := range resources {
		s.times[i] = make([]int64, 0, len(r.frames))
		s.living[i] = make(map[int32]bool, len(r.living))
		for _, o := range r.living {
			s.living[i][o] = true
		}
	}
	return s
}

func (s *state) changedLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// begin lets events be written, and, called again, opens the gate.
func (s *state) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		s.began, s.open = time.Now(), s.gate == 0
	} else {
		s.open = true
	}
	s.changedLocked()
}

// watching notes that a watch begins, or, with -1, ends.
func (s *state) watching(r *resource, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched[r.index] += by
	s.changedLocked()
}

// boundLocked is the number of the event, among those of all, before which all may be written now.
func (s *state) boundLocked() int {
	switch {
	case s.began.IsZero():
		return 0
	case s.rate > 0:
		return int(time.Since(s.began).Seconds()*s.rate) + 1
	}
	least := math.MaxInt
	for i, r := range s.resources {
		if s.written[i] < len(r.frames) {
			if s.watched[i] == 0 {
				return 0
			}
			least = min(least, int(r.frames[s.written[i]].global))
		}
	}
	if least < math.MaxInt {
		least += s.window
	}
	if !s.open {
		least = min(least, s.gate)
	}
	return least
}

// dueLocked is when an event is to be written, at a rate, once that has begun.
func (s *state) dueLocked(f frame) time.Time {
	return s.began.Add(time.Duration(float64(f.global) / s.rate * float64(time.Second)))
}

// await returns frames of a resource, from one on, that a watch may send: written ones, or those that it has written itself.
// There is at least one, unless the time is up, the context ended, or there are no more to come.
func (s *state) await(ctx context.Context, r *resource, from int, until <-chan time.Time) (to int) {
	var timer *time.Timer
	for {
		s.mu.Lock()
		to = s.writeLocked(r, from)
		changed, timed, due := s.changed, s.rate > 0 && !s.began.IsZero() && from < len(r.frames), time.Duration(0)
		if timed {
			due = time.Until(s.dueLocked(r.frames[from]))
			changed = nil // only time can help
		}
		s.mu.Unlock()
		if to > from {
			return to
		}
		var alarm <-chan time.Time
		if timed {
			timer = time.NewTimer(due) // at once, where the clocks of bound and due differ by a rounding
			alarm = timer.C
		}
		select {
		case <-changed:
		case <-alarm:
		case <-until:
			return from
		case <-ctx.Done():
			return from
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// chunk bounds the bytes that are sent at once.
const chunk = 64 << 10

func (s *state) writeLocked(r *resource, from int) (to int) {
	bound, begin := 0, r.frameBegin(from)
	for to = from; to < len(r.frames); to++ {
		f := r.frames[to]
		// Events with the same resource version are one write: no list shows half of it.
		one := to > from && r.frames[to-1].rv == f.rv
		if to > from && !one && f.end-begin > chunk {
			break
		}
		if to < s.written[r.index] {
			continue
		}
		if bound == 0 {
			bound = s.boundLocked()
		}
		if !one && int(f.global) >= bound {
			break
		}
		s.newest = max(s.newest, f.rv)
		at := time.Now()
		if s.rate > 0 && s.dueLocked(f).Before(at) {
			at = s.dueLocked(f) // what a client that does not read keeps waiting counts from then on
		}
		s.times[r.index] = append(s.times[r.index], at.UnixNano())
		o := &r.objects[f.object]
		o.first, o.begin, o.end = false, r.frameBegin(to)+int64(len(prefix(f.kind))), f.end-int64(len(suffix))
		if s.living[r.index][f.object] = true; f.kind == deleted {
			delete(s.living[r.index], f.object)
		}
		s.written[r.index] = to + 1
	}
	if bound != 0 && to > from && s.rate == 0 {
		s.changedLocked() // others may go on
	}
	return to
}

// The indices of two of the kinds.
const (
	added   = 0
	deleted = 2
)

// versionsLocked are the resource versions of a resource's present state: from that of its last change to the last before its next one.
func (s *state) versionsLocked(r *resource) (from, to uint64) {
	n := s.written[r.index]
	from, to = s.first, s.newest
	if n > 0 {
		from = r.frames[n-1].rv
	}
	if n < len(r.frames) && r.frames[n].rv <= to {
		to = r.frames[n].rv - 1
	}
	return from, max(from, to)
}

// A view is what a list shows.
type view struct {
	rv      uint64
	newest  uint64 // of all resources
	oldest  uint64 // that shows the same
	objects []object
}

// view gives what lives of a resource, in the order of lists.
func (s *state) view(r *resource, selected func(object) bool) view {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := view{newest: s.newest}
	v.oldest, v.rv = s.versionsLocked(r)
	for i := range s.living[r.index] {
		if o := r.objects[i]; selected(o) {
			v.objects = append(v.objects, o)
		}
	}
	slices.SortFunc(v.objects, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return v
}

// version is the one that a bookmark has, for a watch that was sent everything before a frame, if that is all there is.
func (s *state) version(r *resource, sent int) (rv uint64, current bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, rv = s.versionsLocked(r)
	return rv, sent == s.written[r.index]
}

// Progress says how far a server is.
type Progress struct {
	Watched bool // each resource that has events is
	Written int
	Events  int
}

func (s *state) progress() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Progress{Watched: true}
	for i, r := range s.resources {
		p.Written += s.written[i]
		p.Events += len(r.frames)
		p.Watched = p.Watched && (s.watched[i] > 0 || len(r.frames) == 0)
	}
	return p
}

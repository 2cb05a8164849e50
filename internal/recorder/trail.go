package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/patch"
)

const (
	// trailLength bounds the noted versions of those that an etcd's streams are served, some hundred bytes each. They show
	// afterwards up to where a history that went backwards is still the same. Once half of them are noted, one is noted every
	// trailEvery: together a minute of a busy cluster.
	trailLength = 600
	trailEvery  = 100 * time.Millisecond
)

// footprint is a version that was served when it was new.
type footprint struct {
	of *claims
	witness
	at       time.Time // when it was served
	recorded time.Time // the same by the clock of the record
	found    int       // how many reversals had been found by then
	history  int       // in which of its histories the stream was
}

func (c *claims) footprintLocked(w witness, at time.Time) footprint {
	return footprint{c, w, at, c.all.now(), len(c.all.reversals), c.history}
}

// notesLocked reports whether the next version is to be noted.
func (c *claims) notesLocked() bool {
	head := c.headLocked()
	return !c.reversed && c.told == len(c.all.reversals) && (len(head.trail) < trailLength/2 || time.Since(head.noted) >= trailEvery)
}

// note adds a version to the trail of its etcd.
func (c *claims) note(w witness) {
	w = w.reduced()
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.notesLocked() {
		return
	}
	head := c.headLocked()
	head.noted = time.Now()
	head.trail = shortened(append(head.trail, c.footprintLocked(w, head.noted)))
}

// shortened drops the oldest of a trail that is too long.
func shortened(trail []footprint) []footprint {
	return slices.Delete(trail, 0, max(0, len(trail)-trailLength))
}

// writtenAt is what of an object's metadata tells when it was written; see sameMetadata.
type writtenAt struct {
	Created  json.RawMessage  `json:"creationTimestamp,omitempty"`
	Deleted  json.RawMessage  `json:"deletionTimestamp,omitempty"`
	Number   json.RawMessage  `json:"generation,omitempty"`
	Managers []writtenManager `json:"managedFields"`
}

type writtenManager struct {
	Time json.RawMessage `json:"time,omitempty"`
}

// reduced is the witness without what need not be kept in memory.
func (w witness) reduced() witness {
	if w.doc == nil {
		return w
	}
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
	// common is the newest version that was served and is known to be in both; zero where there is none.
	common footprint
	// last is where a gap begins: the newest version that is known to be in the old history only, or an older one. It is zero
	// if this process was served nothing of that history.
	last footprint
	// until is when what was served began to be of the new history for certain. It is zero if this process was served nothing
	// that may be of the old one.
	until time.Time
	trail []footprint
}

// trailLocked is what an etcd served before the reversal of that number, to streams that have learned of the earlier ones. Of
// the stream's own trail it takes what was served in its present history. The stream may have left others by lists, which are
// no reversals that have a number. What others were served in a history that they have left so may be of the one that is asked
// about.
func (c *claims) trailLocked(reversal int) []footprint {
	return slices.DeleteFunc(slices.Clone(c.headLocked().trail), func(f footprint) bool {
		return f.found > reversal || f.of.told < reversal || f.of == c && f.history != c.history
	})
}

// leaveBehindLocked drops what an etcd served before the reversal of that number, when it has been asked about. It is of no
// use after that. What another stream has brought along, or was served, meanwhile stays until that stream asks.
func (c *claims) leaveBehindLocked(reversal int, asked []footprint) {
	done := stepsOf(asked)
	head := c.headLocked()
	head.trail = slices.DeleteFunc(head.trail, func(f footprint) bool {
		return f.found <= reversal && (f.of == c || f.of.told < reversal || done[f.step()])
	})
}

// step tells footprints apart.
type step struct {
	of       *claims
	revision uint64
}

func (f *footprint) step() step { return step{f.of, f.revision} }

func stepsOf(trail []footprint) map[step]bool {
	steps := make(map[step]bool, len(trail))
	for i := range trail {
		steps[trail[i].step()] = true
	}
	return steps
}

// unasked is what of a trail is not in another.
func unasked(trail, asked []footprint) []footprint {
	done := stepsOf(asked)
	return slices.DeleteFunc(trail, func(f footprint) bool { return done[f.step()] })
}

// part asks etcd where the histories have parted. The revision is known to be of the old history. So is served, if it was
// served to this process. What etcd has forgotten is older than what it has not.
func part(ctx context.Context, trail []footprint, revision uint64, served footprint) (parted, error) {
	slices.SortFunc(trail, func(a, b footprint) int { return cmp.Compare(a.revision, b.revision) })
	trail = slices.CompactFunc(trail, func(a, b footprint) bool { return a.of == b.of && a.revision == b.revision })
	p, s := parted{trail: trail}, search{silent: map[*claims]bool{}}
	first, older := time.Now(), served.of != nil
	from, _ := slices.BinarySearchFunc(trail, revision, func(f footprint, of uint64) int { return cmp.Compare(f.revision, of) })
	err := s.halve(ctx, trail[:from], func(f footprint, what sight) bool {
		if what == same {
			p.common = f
		}
		older = older || what == other || what == ahead
		return what == other || what == ahead
	})
	if err != nil {
		return p, err
	}
	// What is in etcd there is of the new history.
	err = s.halve(ctx, trail[from:], func(f footprint, what sight) bool {
		switch what {
		case same:
			first = f.at
		case other, ahead:
			p.last = f
		case unknown:
		}
		older = older || what != same
		return what == same
	})
	if err != nil {
		return p, err
	}
	// What nobody answers for may be of the old one. That it is, and that the gap begins no earlier, is not known.
	if older || slices.ContainsFunc(trail, func(f footprint) bool { return s.silent[f.of] }) {
		p.until = first
	}
	if !older {
		p.last = served
		return p, s.failure()
	}
	if p.last.recorded.IsZero() && !served.recorded.IsZero() {
		p.last = served
	}
	// Where etcd has forgotten, the gap rather begins too early.
	if p.last.recorded.IsZero() {
		p.last = p.common
	}
	if p.last.recorded.IsZero() && len(trail) > 0 {
		p.last = trail[0]
	}
	return p, s.failure()
}

// search is for what etcd says of a trail.
type search struct {
	answered bool             // for some stream
	silent   map[*claims]bool // those for which the server does not answer now, or cannot be asked
	failed   error            // why
}

// failure is an error if the server answers for no stream. Then it is being restarted, and part is tried again.
func (s *search) failure() error {
	if s.answered {
		return nil
	}
	return s.failed
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
				s.failed = errors.Join(s.failed, err)
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
	var others []*claims
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
	what, err = f.of.look(ctx, f.witness, f.revision)
	s.silent[f.of], s.answered = err != nil, s.answered || err == nil
	return what, err
}

// servedUntil says up to where, and when, what was served is known to be of the history that the stream has left. If this
// process was served nothing of it, that is where the process has begun. It is zero if there was nothing, or if it is on
// record.
func (c *claims) servedUntil() deltafifo.Until {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.reversed || c.parted == nil {
		return deltafifo.Until{}
	}
	last := c.parted.last
	if last.recorded.IsZero() {
		last = c.resumed
	}
	if last.revision == 0 {
		return deltafifo.Until{}
	}
	until := deltafifo.Until{ResourceVersion: strconv.FormatUint(last.revision, 10), Time: last.recorded}
	common, trail := c.parted.common, c.parted.trail
	if common.recorded.IsZero() && len(trail) > 0 {
		common = trail[0] // as in part
	}
	if common.recorded.IsZero() || common.revision > last.revision {
		return until
	}
	// The stream may have been in the new history before another had come to the end of the old one. Then it may lack all that
	// is of the old one only.
	at, known, past := common.recorded, false, false
	for _, f := range trail {
		switch {
		case f.of != c:
		case f.revision <= common.revision:
			at, known = f.recorded, true
		case f.revision > last.revision && f.recorded.Before(last.recorded):
			past = true
		}
	}
	if !known {
		for _, f := range trail {
			if f.recorded.Before(at) {
				at = f.recorded
			}
		}
	}
	until.Common = &deltafifo.Until{ResourceVersion: strconv.FormatUint(common.revision, 10), Time: at}
	if past {
		return *until.Common
	}
	return until
}

package rollback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

const (
	// KeptSamples bounds the served versions that a stream keeps for the next probe. samplesPerProbe bounds the reads that
	// they cost an etcd. In a few seconds, an etcd may have been put back and have passed the record again. Then the newest
	// version is of the new history, and only an older one shows that there was another.
	KeptSamples     = 24
	samplesPerProbe = 24
	// keptDue and duePerProbe are the same for samples that wait for an answer. lookTime bounds how long the answers of one
	// probe may take.
	keptDue     = 96
	duePerProbe = 96
	lookTime    = probeEvery
	// mostRefused is how often the recorder asks about a version of which the server will not say anything. That takes ten
	// minutes, longer than most etcds remember.
	mostRefused = int(10 * time.Minute / probeEvery)
)

// sample is a version that a stream was served: etcd has it at its revision, and always will.
type sample struct {
	footprint
	listed   uint64 // the resource version of the list that has shown it; 0 if a watch has served it
	recalled bool   // it is from the record
	due      bool   // it waits for an answer
	paused   bool   // it was served before a silence
	refused  int    // how often the server would not say
	turns    int    // how often it was asked about, or its stream was silent
}

// asOf is the revision at which etcd is asked.
func (s *sample) asOf() uint64 { return max(s.listed, s.revision) }

// bare is the sample without the object.
func (s *sample) bare() sample {
	bare := *s
	bare.doc = nil
	return bare
}

// samples are some of the samples that were added, spread evenly over their number, and not over the time. After this process,
// or the network, has stood still, all that was written meanwhile comes at once. The first added is among them.
type samples struct {
	kept            []*sample
	stride, skipped int // from one to the next, and since the last
}

// skip reports whether the next is left out.
func (s *samples) skip() bool {
	if s.skipped++; s.skipped < s.stride {
		return true
	}
	s.skipped = 0
	return false
}

// add adds one that is not left out.
func (s *samples) add(one *sample, most int) {
	s.kept = append(s.kept, one)
	if len(s.kept) <= most {
		return
	}
	half := make([]*sample, 0, most)
	for i := 0; i < len(s.kept); i += 2 {
		half = append(half, s.kept[i])
	}
	s.kept, s.stride = half, 2*max(s.stride, 1)
}

// sampleLocked keeps a version now and then.
func (c *Stream) sampleLocked(f footprint) {
	if !c.fresh.skip() {
		c.fresh.add(&sample{footprint: f}, KeptSamples)
	}
}

// waitingLocked is where the sample waits for an answer. What was served before a silence is not thinned among others.
func (s *sample) waitingLocked() *samples {
	if s.paused {
		return &s.of.paused
	}
	return &s.of.due
}

// owe has the next probes look at the sample until there is an answer.
func (s *sample) owe() {
	if s.due {
		return
	}
	s.due, s.witness = true, s.reduced()
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	waiting := s.waitingLocked()
	if len(waiting.kept) == 0 {
		*waiting = samples{}
	}
	if s.standsLocked() && !waiting.skip() {
		waiting.add(s, keptDue)
	}
}

// answered has nobody look at the sample any more.
func (s *sample) answered(what sight) {
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	if what == same {
		s.of.etcd.holdsLocked(s, time.Now())
	}
	if !s.due {
		return
	}
	waiting := s.waitingLocked()
	waiting.kept = slices.DeleteFunc(waiting.kept, func(o *sample) bool { return o == s })
}

// refuse notes that the server would not say. It may have no etcd, or have just been started; but there are versions of which it never says anything.
func (s *sample) refuse() {
	if s.refused++; s.refused < mostRefused {
		s.owe()
	} else {
		s.answered(unknown)
	}
}

// takeSamples gives what the probe has to look at, by etcd. The newest version of all comes first, because nothing may follow
// that shows a silence. Then come samples without an answer so far. Then come some dozen of what was sampled since the last
// time, from all of it. Samples of a stream that cannot be asked for wait.
func (r *Streams) takeSamples() (taken [][]*sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	paused, due, fresh := map[*etcd][]*sample{}, map[*etcd][]*sample{}, map[*etcd][]*sample{}
	for _, c := range r.streams {
		if e := c.etcd; c.provesLocked() {
			paused[e], due[e], fresh[e] = append(paused[e], c.paused.kept...), append(due[e], c.due.kept...), append(fresh[e], c.fresh.kept...)
			c.fresh = samples{}
		}
	}
	for e := range fresh {
		known := map[step]bool{}
		once := func(all []*sample) []*sample {
			return slices.DeleteFunc(all, func(s *sample) bool {
				again := known[s.step()]
				known[s.step()] = true
				return again
			})
		}
		var newest []*sample
		if last := e.last; last.of != nil && last.of.provesLocked() && last.standsLocked() {
			newest = append(newest, e.lastLocked())
			newest[0].due = true // It need not wait: the next probe has it again.
		}
		taken = append(taken, slices.Concat(newest, inTurn(once(paused[e]), samplesPerProbe), inTurn(once(due[e]), duePerProbe),
			spread(once(fresh[e]), samplesPerProbe)))
	}
	return taken
}

// inTurn gives that many samples at most, of those that had the fewest turns. A sample for which the server does not answer
// must not keep others waiting.
func inTurn(all []*sample, most int) (some []*sample) {
	slices.SortStableFunc(all, func(a, b *sample) int { return cmp.Compare(a.turns, b.turns) })
	for len(all) > 0 && len(some) < most {
		next := slices.IndexFunc(all, func(s *sample) bool { return s.turns > all[0].turns })
		if next < 0 {
			next = len(all)
		}
		some = append(some, spread(all[:next], most-len(some))...)
		all = all[next:]
	}
	return some
}

// spread gives that many samples at most, evenly from all, in the order in which they were served. The first is always among
// them, because it begins the time in which nobody has looked.
func spread(all []*sample, most int) []*sample {
	slices.SortStableFunc(all, func(a, b *sample) int {
		return cmp.Or(a.recorded.Compare(b.recorded), cmp.Compare(a.revision, b.revision))
	})
	most = min(len(all), most)
	some := make([]*sample, 0, most)
	for i := range most {
		some = append(some, all[i*len(all)/most])
	}
	return some
}

// RecallUnverified takes over what a recorder before this one was served last, and may not have looked at.
func (c *Stream) RecallUnverified(versions []postgres.Version) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	for _, v := range versions {
		if revision, err := strconv.ParseUint(v.ResourceVersion, 10, 64); err == nil {
			w := witness{revision: revision, namespace: v.Namespace, name: v.Name, uid: types.UID(v.UID)}
			c.due.kept = append(c.due.kept, &sample{footprint: footprint{of: c, witness: w, recorded: v.Observed, history: c.history}, recalled: true, due: true})
		}
	}
}

// lookBack compares with etcd what was served since the last probe. If a server does not answer for a stream, it is asked no more for it this time, because samples of other streams are
// not kept for long.
func (r *Streams) lookBack(ctx context.Context) (failed error) {
	silent, taken, answering := map[*Stream]bool{}, r.takeSamples(), time.Duration(0)
	for _, some := range taken {
		for i, s := range some {
			if answering >= lookTime {
				s.owe()
				continue
			}
			s.turns++
			if silent[s.of] {
				s.owe()
				continue
			}
			began := time.Now()
			what, err := s.of.ask.lookUntilAnswered(ctx, s.witness, s.asOf())
			if kube.SaysNothing(err) {
				failed, answering = errors.Join(failed, err), answering+time.Since(began)
				s.refuse()
				continue
			}
			if err != nil && len(silent) == 0 {
				silent, _ = askAll(ctx, sampledBeside(s.of, taken)) // One at a time would take too long.
			}
			if err != nil {
				failed, silent[s.of] = errors.Join(failed, err), true
				s.owe() // A server that cannot answer now is restarted, perhaps with an older etcd.
				continue
			}
			answering += time.Since(began)
			s.answered(what)
			if what == other || what == ahead {
				now := map[sight]string{other: "is something else in etcd", ahead: "etcd has not come to"}[what]
				proof := fmt.Sprintf("%s %s/%s was served with resource version %d, which %s", s.of.ask.name, s.namespace, s.name, s.asOf(), now)
				if s.stands() {
					failed = errors.Join(failed, s.of.found(ctx, evidence{proof, s.witness, s.asOf(), !s.recalled, s.recorded, s.history}))
					for _, after := range some[i+1:] { // A stream that leaves by a list of its own, meanwhile or later, tells nobody.
						after.owe()
					}
					break
				}
			}
		}
	}
	return failed
}

// sampledBeside are the other streams of which there are samples.
func sampledBeside(c *Stream, taken [][]*sample) (streams []*Stream) {
	for _, samples := range taken {
		for _, s := range samples {
			if s.of != c && !slices.Contains(streams, s.of) {
				streams = append(streams, s.of)
			}
		}
	}
	return streams
}

// stands reports whether the stream is still in the history in which the sample was taken.
func (s *sample) stands() bool {
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	return s.standsLocked()
}

func (s *sample) standsLocked() bool { return s.of.isInLocked(s.history) }

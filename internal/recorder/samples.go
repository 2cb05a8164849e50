package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/sink/postgres"
)

const (
	// keptSamples bounds the versions of those that a stream is served which are kept to be looked at by the next probe, samplesPerProbe the reads that
	// they cost an etcd: it may have been put back, and have passed the record again, in a few seconds. Then what is newest is of the new history,
	// and only what was served before shows that there was another.
	keptSamples     = 24
	samplesPerProbe = 24
	// mostLate bounds for how many probes one that is late is held to stand, and how many more are looked at for which the server has not answered before.
	mostLate = 6
	// silence is how long nothing is served at least of an etcd that is put back: it has to be stopped, and started again.
	silence = time.Second / 2
)

// sample is a version that a stream was served: etcd has it at its revision, and always will.
type sample struct {
	footprint
	history  int  // in which of its histories the stream was: in another one, it says nothing any more
	recalled bool // it is from the record
}

// sampleLocked keeps a version now and then. They are spread evenly over what was served since the last probe, and not over the time: when this process, or the
// network, has stood still, all that was written meanwhile comes at once.
func (c *claims) sampleLocked(w witness, at time.Time) {
	if c.unsampled++; c.unsampled < c.stride {
		return
	}
	c.unsampled = 0
	late := c.all.lateLocked()
	if late > 1 {
		w = w.reduced()
	}
	c.samples = append(c.samples, sample{footprint: c.footprintLocked(w, at), history: c.history})
	if len(c.samples) <= late*keptSamples {
		return
	}
	c.samples, c.stride = halved(c.samples), 2*max(c.stride, 1)
}

// halved is every other one, the first among them.
func halved(samples []sample) []sample {
	some := make([]sample, 0, len(samples))
	for i := 0; i < len(samples); i += 2 {
		some = append(some, samples[i])
	}
	return some
}

// pauseLocked keeps what was served last of an etcd before it was silent, whatever is served next: one that is put back is not there for a while, and what it is
// put back to may have been served for a moment only, among much else.
func (c *claims) pauseLocked(w witness, at time.Time) {
	head := c.headLocked()
	if last := head.last; last.of != nil && at.Sub(last.at) >= silence && last.standsLocked() {
		last.witness = last.reduced()
		if last.of.due = append(last.of.due, last); len(last.of.due) > mostLate*samplesPerProbe {
			last.of.due = halved(last.of.due)
		}
	}
	head.last = sample{footprint: c.footprintLocked(w, at), history: c.history}
}

// lateLocked is for how many probes the next one stands: where one takes its time, it is looked at as much as if it had not.
func (r *revisions) lateLocked() int { return min(1+int(time.Since(r.taken)/(2*probeEvery)), mostLate) }

// dropSamplesLocked has the next version that is served be the first sample.
func (c *claims) dropSamplesLocked() { c.samples, c.stride, c.unsampled = nil, 1, 0 }

// takeSamples gives what is to be looked at, by etcd: some dozen of what was sampled since the last time, from all of it, and those for which there was no
// answer then. Those of a stream that cannot be asked for wait.
func (r *revisions) takeSamples() (taken [][]sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := samplesPerProbe * r.lateLocked()
	r.taken = time.Now()
	due, fresh := map[*claims][]sample{}, map[*claims][]sample{}
	for _, c := range r.streams {
		if head := c.headLocked(); c.provesLocked() {
			due[head], fresh[head] = append(due[head], c.due...), append(fresh[head], c.samples...)
			c.due = nil
			c.dropSamplesLocked()
		}
	}
	for head := range fresh {
		before := spread(due[head], mostLate*samplesPerProbe)
		since := slices.DeleteFunc(fresh[head], func(s sample) bool {
			return slices.ContainsFunc(before, func(b sample) bool { return b.step() == s.step() })
		})
		if samples := append(before, spread(since, most)...); len(samples) > 0 {
			taken = append(taken, samples)
		}
	}
	return taken
}

// spread gives that many samples at most, evenly from all, in the order in which they were served: the first is always among them, and begins the time
// in which nobody has looked.
func spread(samples []sample, most int) []sample {
	slices.SortStableFunc(samples, func(a, b sample) int {
		return cmp.Or(a.recorded.Compare(b.recorded), cmp.Compare(a.revision, b.revision))
	})
	some := make([]sample, 0, most)
	for i := range min(len(samples), most) {
		some = append(some, samples[i*len(samples)/min(len(samples), most)])
	}
	return some
}

// recallUnproven takes over what a recorder before this one was served last, and may not have looked at.
func (c *claims) recallUnproven(versions []postgres.Version) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	for _, v := range versions {
		if revision, err := strconv.ParseUint(v.ResourceVersion, 10, 64); err == nil {
			w := witness{revision: revision, namespace: v.Namespace, name: v.Name, uid: types.UID(v.UID)}
			c.due = append(c.due, sample{footprint: footprint{of: c, witness: w, recorded: v.Observed}, recalled: true})
		}
	}
}

// lookBack has streams leave what was proved to be no more before, and holds what was served since the last probe against etcd. A server that does not answer
// for a stream is asked for no more of it this time: what others were served is not kept for long.
func (r *revisions) lookBack(ctx context.Context) (failed error) {
	for _, c := range r.proving() {
		if _, failed = c.leaveForProof(ctx); failed != nil {
			break // The server does not answer.
		}
	}
	silent, taken := map[*claims]bool{}, r.takeSamples()
	for _, samples := range taken {
		for _, s := range samples {
			if silent[s.of] {
				s.keep()
				continue
			}
			what, err := s.of.look(ctx, s.witness, s.revision)
			if err != nil && len(silent) == 0 {
				silent, _ = askAll(ctx, sampledBeside(s.of, taken)) // One at a time would take too long.
			}
			if err != nil {
				failed, silent[s.of] = errors.Join(failed, err), true
				s.keep() // A server that cannot answer now is restarted, perhaps with an older etcd.
				continue
			}
			if (what == other || what == ahead) && s.stands() {
				now := map[sight]string{other: "is something else in etcd", ahead: "etcd has not come to"}[what]
				proof := fmt.Sprintf("%s %s/%s was served with resource version %d, which %s", s.of.name, s.namespace, s.name, s.revision, now)
				served := s.footprint
				if s.recalled {
					served.of = nil
				}
				failed = errors.Join(failed, s.of.found(ctx, evidence{proof, s.witness, s.revision, served}))
				break
			}
		}
	}
	return failed
}

// proving are the streams whose history can be shown to be no more.
func (r *revisions) proving() (streams []*claims) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.streams {
		if c.provesLocked() {
			streams = append(streams, c)
		}
	}
	return streams
}

// sampledBeside are the other streams of which there are samples.
func sampledBeside(c *claims, taken [][]sample) (streams []*claims) {
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

func (s *sample) standsLocked() bool { return !s.of.reversed && s.of.history == s.history }

// keep has the next probe look at the sample, whatever is served until then.
func (s *sample) keep() {
	s.witness = s.witness.reduced()
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	if s.standsLocked() {
		s.of.due = append(s.of.due, *s)
	}
}

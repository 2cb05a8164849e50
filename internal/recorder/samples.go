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
	// sampleEvery is how often one of the versions that a stream is served is kept to be looked at by the next probe: etcd may have been put
	// back, and have passed the record again, in a few seconds. Then what is newest is of the new history, and only what was served
	// before shows that there was another.
	sampleEvery = time.Second
	// keptSamples bounds those of one stream, samplesPerProbe the reads that they cost an etcd with each probe.
	keptSamples     = 16
	samplesPerProbe = 12
)

// sample is a version that a stream was served: etcd has it at its revision, and always will.
type sample struct {
	footprint
	history  int  // in which of its histories the stream was: in another one, it says nothing any more
	recalled bool // it is from the record
}

func (c *claims) sampleLocked(w witness) {
	if now := time.Now(); now.Sub(c.sampled) >= sampleEvery {
		c.sampled = now
		c.samples = append(c.samples, sample{footprint: c.footprintLocked(w, now), history: c.history})
		if len(c.samples) > keptSamples {
			c.samples = slices.Delete(c.samples, 0, 1)
		}
	}
}

// takeSamples gives what was sampled since the last time, by etcd: some dozen, from all of the time. Those of a stream that cannot be asked for wait.
func (r *revisions) takeSamples() [][]sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	byEtcd := map[*claims][]sample{}
	for _, c := range r.streams {
		if c.provesLocked() {
			head := c.headLocked()
			byEtcd[head] = append(byEtcd[head], c.samples...)
			c.samples = nil
		}
	}
	taken := r.takeRecalledLocked()
	for _, samples := range byEtcd {
		slices.SortFunc(samples, func(a, b sample) int { return cmp.Compare(a.revision, b.revision) })
		some := make([]sample, 0, samplesPerProbe)
		for i := range min(len(samples), samplesPerProbe) {
			some = append(some, samples[i*len(samples)/min(len(samples), samplesPerProbe)])
		}
		taken = append(taken, some)
	}
	return taken
}

// recallUnproven takes over what a recorder before this one was served last, and may not have looked at.
func (c *claims) recallUnproven(versions []postgres.Version) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	for _, v := range versions {
		if revision, err := strconv.ParseUint(v.ResourceVersion, 10, 64); err == nil {
			w := witness{revision: revision, namespace: v.Namespace, name: v.Name, uid: types.UID(v.UID)}
			c.recalled = append(c.recalled, sample{footprint: footprint{of: c, witness: w, recorded: v.Observed}, recalled: true})
		}
	}
}

// takeRecalledLocked gives what is left of that, in order.
func (r *revisions) takeRecalledLocked() (taken [][]sample) {
	for _, c := range r.streams {
		if c.provesLocked() && len(c.recalled) > 0 {
			taken, c.recalled = append(taken, c.recalled), nil
		}
	}
	return taken
}

// lookBack holds what was served since the last probe against etcd. A server that does not answer for a stream is asked for no more of it this time: what others
// were served is not kept for long.
func (r *revisions) lookBack(ctx context.Context) (failed error) {
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
				if err := s.of.found(ctx, evidence{proof, s.witness, s.revision, served}); err != nil {
					failed = errors.Join(failed, err)
					s.keep() // where it has not left, to be found again
				}
				break
			}
		}
	}
	return failed
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

// keep has the next probe look at the sample.
func (s *sample) keep() {
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	switch {
	case !s.standsLocked():
	case s.recalled:
		s.of.recalled = append(s.of.recalled, *s) // There are no others to come.
	case len(s.of.samples) < keptSamples:
		s.of.samples = append(s.of.samples, *s)
	}
}

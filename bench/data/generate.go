package data

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/watch"
)

// Settings are what a generated Set depends on.
type Settings struct {
	Seed   uint64
	Live   int // objects that are alive at any time, to a tenth
	Events int // that happen after the beginning
}

// minLive is how many objects make a cluster in which everything happens.
const minLive = 100

type generatedSet struct {
	settings Settings
	texts    [kinds][]*text
	live     int // at the beginning
}

// Generate gives a cluster of a steady size. Nodes renew their Leases and report, Deployments are rolled out, Jobs run, Pods
// fail their probes, and Events are written and expire. Equal settings give equal bytes.
func Generate(s Settings) (Set, error) {
	if s.Live < minLive || s.Events < 0 {
		return nil, fmt.Errorf("a generated cluster needs %d living objects or more, and no negative number of events: %d, %d", minLive, s.Live, s.Events)
	}
	texts, err := newTexts()
	if err != nil {
		return nil, err
	}
	g := &generatedSet{settings: s, texts: texts}
	for _, all := range g.cluster().store.living {
		g.live += len(all)
	}
	return g, nil
}

// cluster is one that has come to life, at the beginning.
func (g *generatedSet) cluster() *cluster {
	c := newCluster(rand.New(rand.NewPCG(g.settings.Seed, 1)), g.texts)
	c.populate(g.settings.Live)
	for c.schedule.agenda[0].at < comingToLife {
		c.schedule.step()
	}
	return c
}

func (g *generatedSet) Resources() []Resource { return generated[:] }

func (g *generatedSet) Len() (live, events int) { return g.live, g.settings.Events }

func (g *generatedSet) First() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		c := g.cluster()
		for _, all := range c.store.living {
			slices.SortFunc(all, func(a, b *object) int {
				return cmp.Or(cmp.Compare(a.values[holeNamespace], b.values[holeNamespace]), cmp.Compare(a.values[holeName], b.values[holeName]))
			})
			for _, o := range all {
				if !yield(c.store.event(o, watch.Added)) {
					return
				}
			}
		}
	}
}

func (g *generatedSet) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		c := g.cluster()
		c.store.watched = true
		for left := g.settings.Events; left > 0; {
			for len(c.store.told) == 0 {
				c.schedule.step()
			}
			for _, e := range c.store.told[:min(len(c.store.told), left)] {
				if left--; !yield(e, nil) {
					return
				}
			}
			c.store.told = c.store.told[:0]
		}
	}
}

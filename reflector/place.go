package reflector

import (
	"sync"

	"k8s.io/utils/clock"

	"github.com/kuberewind/kuberewind/delta"
)

// place is how far the reflector has come: its cursor, and whether the store has a position at all. It belongs to the
// goroutine inside ListAndWatch, except for newest.
type place struct {
	at          cursor
	provisional bool // at is Options.StartResourceVersion: nothing is recorded yet
	clock       clock.PassiveClock
	moved       func(resourceVersion string) // Hooks.Position

	mu     sync.RWMutex // protects lastRV, a copy of at.Newest for any goroutine
	lastRV string
}

func newPlace(options *Options) *place {
	p := &place{clock: options.Clock, moved: options.Hooks.Position}
	switch recorded, start := options.ResourceVersion, options.StartResourceVersion; {
	case delta.Resumable(recorded):
		p.at.Position = delta.At(recorded)
	case delta.Resumable(start):
		p.at.Position, p.provisional = delta.At(start), true
	}
	p.lastRV = p.at.Newest
	return p
}

// recorded reports whether the store has a position in this stream.
func (p *place) recorded() bool { return p.at.Newest != "" && !p.provisional }

// newest returns at.Newest, for any goroutine.
func (p *place) newest() string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.lastRV
}

// repeats reports whether the stream has seen the event already.
func (p *place) repeats(seen sighting) bool { return p.at.repeats(seen, p.clock.Now()) }

// advance moves the place past an event that the store has accepted (I1), and reports whether it has moved.
func (p *place) advance(seen sighting) bool {
	p.provisional = false
	moved := p.at.saw(seen, p.clock.Now())
	if moved {
		p.publish()
	}
	return moved
}

// waited notes that the reflector has read the watch until now.
func (p *place) waited() { p.at.ended(p.clock.Now()) }

// listed moves the place to a list that the store has accepted (I1).
func (p *place) listed(resourceVersion string) {
	p.at, p.provisional = cursor{Position: delta.At(resourceVersion)}, false
	p.publish()
}

// publish makes the place known, after the store has accepted everything up to it.
func (p *place) publish() {
	p.mu.Lock()
	p.lastRV = p.at.Newest
	p.mu.Unlock()
	p.moved(p.at.Complete)
}

package reflector

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/delta"
)

// delivery gives events to the store and, I1, only then moves the place.
type delivery struct {
	expected expectation
	out      outlet
	place    *place
	quiet    *quiet
	health   *health
}

// watched delivers an event of a watch, unless the store already has it.
func (d *delivery) watched(event watch.Event, seen sighting) error {
	if d.place.repeats(seen) {
		return nil
	}
	if err := d.out.deliver(event, seen.rv); err != nil {
		return err
	}
	moved := d.place.advance(seen)
	if delta.Resumable(seen.rv) {
		d.out.updateResourceVersion(d.place.at.Newest)
	}
	d.quiet.heard(event.Type, moved)
	return nil
}

// recovered delivers an event that no watch has sent. The event shows that the history goes on, so an interrupted
// stream resumes.
func (d *delivery) recovered(event watch.Event) error {
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return err
	}
	seen := sightingOf(event.Type, object)
	if d.place.repeats(seen) {
		return nil
	}
	if err := d.health.goesOn(); err != nil {
		return err
	}
	deliver := d.out.deliver
	if event.Type == watch.Bookmark {
		deliver = d.out.prove
	}
	if err := deliver(event, seen.rv); err != nil {
		return err
	}
	if d.place.advance(seen) {
		d.quiet.moved()
	}
	d.out.updateResourceVersion(d.place.at.Newest)
	return nil
}

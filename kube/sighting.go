package kube

import "k8s.io/apimachinery/pkg/runtime/schema"

// sighting is a verdict that a later discovery must confirm.
type sighting struct {
	verdict verdict
	round   int // the first discovery with this verdict
}

// sightings are the verdicts that the next discovery must confirm.
type sightings struct {
	round int // number of the last complete discovery
	first map[schema.GroupResource]sighting
}

// forget drops the unconfirmed verdict of a resource.
func (s *sightings) forget(gr schema.GroupResource) { delete(s.first, gr) }

// confirmed reports whether an earlier discovery had the same verdict. If a different verdict that needs confirmation came
// in between, it reports false.
func (s *sightings) confirmed(gr schema.GroupResource, v verdict) bool {
	first, ok := s.first[gr]
	if !ok || first.verdict != v {
		s.first[gr] = sighting{v, s.round}
		return false
	}
	return s.round > first.round
}

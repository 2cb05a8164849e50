package kube

import "k8s.io/apimachinery/pkg/runtime/schema"

// sighting is a verdict that a later discovery has to confirm.
type sighting struct {
	verdict verdict
	pass    int // of the first discovery that gave it
}

// sightings are the verdicts that the next discovery has to confirm.
type sightings struct {
	pass  int // number of the last complete discovery
	first map[schema.GroupResource]sighting
}

// forget drops what was not confirmed yet of a resource.
func (s *sightings) forget(gr schema.GroupResource) { delete(s.first, gr) }

// confirmed reports whether an earlier discovery gave the same verdict, and no other one that needs to be confirmed came since.
func (s *sightings) confirmed(gr schema.GroupResource, v verdict) bool {
	first, ok := s.first[gr]
	if !ok || first.verdict != v {
		s.first[gr] = sighting{v, s.pass}
		return false
	}
	return s.pass > first.pass
}

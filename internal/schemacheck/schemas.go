package schemacheck

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/kube"
)

// Schemas knows what decides the content of objects at a resource version.
type Schemas struct {
	mu      sync.Mutex // protects what follows
	server  string     // release
	digests map[schema.GroupResource]string
}

// NewSchemas knows nothing yet.
func NewSchemas() *Schemas { return &Schemas{digests: map[schema.GroupResource]string{}} }

// Defined notes the definition of a resource.
func (s *Schemas) Defined(resource kube.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.digests[resource.GroupResource()] = resource.Schema
}

// Release notes what the server says of itself at /version.
func (s *Schemas) Release(document []byte) {
	release, err := kube.ParseVersion(document)
	if err != nil {
		return // It is on record as it is.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = release
}

// Of names the present schema of a resource, as it is served.
func (s *Schemas) Of(resource kube.Resource) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(strings.Fields(resource.Version+" "+s.digests[resource.GroupResource()]+" "+s.server), " ")
}

// Serves notes the release of the server.
func (s *Schemas) Serves(release string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = release
}

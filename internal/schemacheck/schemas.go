package schemacheck

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/kube"
)

// Schemas holds everything that determines the content of objects at a resource version: the definitions and the release of the server.
type Schemas struct {
	mu      sync.Mutex // protects the fields below
	server  string     // release
	digests map[schema.GroupResource]string
}

// NewSchemas returns empty Schemas.
func NewSchemas() *Schemas { return &Schemas{digests: map[schema.GroupResource]string{}} }

// Defined notes the definition of a resource.
func (s *Schemas) Defined(resource kube.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.digests[resource.GroupResource()] = resource.Schema
}

// Release notes the release in the server's answer to /version.
func (s *Schemas) Release(document []byte) {
	release, err := kube.ParseVersion(document)
	if err != nil {
		return // The record keeps the document as it is.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = release
}

// Of returns the name of the current schema of a resource: its version, the digest of its definition, and the release of the server.
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

package selector

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

// Chosen selects the named objects from the objects that are read, and records which of them it saw.
type Chosen struct {
	targets []resource.Target
	// names is true for a name that was found. A resource without names is selected as a whole.
	names map[schema.GroupResource]map[string]bool
	mu    sync.Mutex // protects the values of names: the keys do not change
}

// NewChosen returns a Chosen for the names of the targets.
func NewChosen(targets []resource.Target) *Chosen {
	c := &Chosen{targets: targets, names: map[schema.GroupResource]map[string]bool{}}
	for _, t := range targets {
		resource := t.Resource.GroupResource()
		for _, name := range t.Names {
			if c.names[resource] == nil {
				c.names[resource] = map[string]bool{}
			}
			c.names[resource][name] = false
		}
	}
	return c
}

// Has reports whether an object is selected.
func (c *Chosen) Has(resource schema.GroupResource, name string) bool {
	names := c.names[resource]
	if names == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, named := names[name]
	if named {
		names[name] = true
	}
	return named
}

// Missing returns an error for each named object that was not found. when is the instant, for the errors.
func (c *Chosen) Missing(when string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	var reported []string
	for _, t := range c.targets {
		for _, name := range t.Names {
			text := fmt.Sprintf("%s %q", t.Resource, name)
			if c.names[t.Resource.GroupResource()][name] || slices.Contains(reported, text) {
				continue
			}
			reported = append(reported, text)
			errs = append(errs, fmt.Errorf("%s did not exist %s", text, when))
		}
	}
	return errors.Join(errs...)
}

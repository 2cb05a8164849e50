package resource

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Brief returns the shortest word for each kind of a catalog: deploy, rs, job. If several resources share a word, it belongs
// to the first in the order of discovery, as in kubectl. The words of the others include their group.
func (c *Catalog) Brief() map[schema.GroupKind]string {
	owner := map[string]*Resource{}
	for _, r := range c.Resources {
		for _, word := range r.words() {
			if owner[word] == nil {
				owner[word] = r
			}
		}
	}
	brief := map[schema.GroupKind]string{}
	for _, r := range c.Resources {
		word := r.words()[0]
		if owner[word] != r {
			word = r.singular() + "." + r.Group
		}
		brief[schema.GroupKind{Group: r.Group, Kind: r.Kind}] = word
	}
	return brief
}

// words returns the names of a resource, the shortest first.
func (r *Resource) words() []string {
	words := []string{r.singular(), r.Resource}
	if len(r.ShortNames) > 0 {
		words = append([]string{r.ShortNames[0]}, words...)
	}
	return words
}

func (r *Resource) singular() string {
	if r.Singular != "" {
		return r.Singular
	}
	return strings.ToLower(r.Kind)
}

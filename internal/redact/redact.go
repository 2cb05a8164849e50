// Package redact replaces values that must not reach a disk or a log by a keyed hash (I9).
//
// A hash covers the resource, namespace, name and path beside the value. So a change of a value shows as a change of its
// hash, and equal values of two objects do not show as equal. The key is that of one cluster (see FileKey).
//
// # Annotations
//
// Tools keep copies of whole objects in annotations. If a resource has a redacted path, then the value of each annotation
// is hashed too, except the few of clearAnnotations. One copy keeps its structure: last-applied-configuration of a Secret,
// if it is an object of kind Secret with no member that this package does not know. The same rules hold inside of it.
//
// # Text that was redacted before
//
// Reapply takes text from the record or the spool, which may be of a time with fewer rules. It keeps hashes and replaces
// the rest. A hash carries a mark that only the key can make. So a value that merely looks like a hash is replaced.
// Apply, for text that a server served, replaces every value, whatever it looks like.
package redact

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/patch"
)

// Secrets says what happens to the values of Secrets.
type Secrets string

const (
	// Hash replaces the values of Secrets.
	Hash Secrets = "hash"
	// Record keeps them as they are.
	Record Secrets = "record"
)

// Path is a place in the objects of some resources.
type Path struct {
	resource, group string
	anyGroup        bool
	path            patch.Path
}

var secretPaths = []string{"secrets.:/data/*", "secrets.:/stringData/*"}

// ParsePath reads resource[.group]:/path. A * in the path stands for every member or element; resource and group are glob
// patterns. Without a group, the path holds for every group. A trailing dot means the core group.
func ParsePath(text string) (Path, error) {
	where, pointer, found := strings.Cut(text, ":")
	if !found || where == "" || !strings.HasPrefix(pointer, "/") {
		return Path{}, fmt.Errorf("redact %q is not resource[.group]:/path/with/*", text)
	}
	resource, group, hasGroup := strings.Cut(where, ".")
	for _, pattern := range []string{resource, group} {
		if _, err := path.Match(pattern, ""); err != nil {
			return Path{}, fmt.Errorf("redact %q: pattern %q: %w", text, pattern, err)
		}
	}
	parsed, err := patch.ParsePath(pointer)
	if err != nil {
		return Path{}, fmt.Errorf("redact %q: %w", text, err)
	}
	return Path{resource: resource, group: group, anyGroup: !hasGroup, path: parsed}, nil
}

// ParsePaths reads several, and gives every fault at once.
func ParsePaths(texts []string) ([]Path, error) {
	var paths []Path
	var errs []error
	for _, text := range texts {
		p, err := ParsePath(text)
		errs = append(errs, err)
		paths = append(paths, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return paths, nil
}

func (p Path) matches(gr schema.GroupResource) bool {
	// ParsePath has tried the patterns.
	resource, _ := path.Match(p.resource, gr.Resource)
	group, _ := path.Match(p.group, gr.Group)
	return resource && (p.anyGroup || group)
}

// Redactor hashes with one key. It is safe for concurrent use.
type Redactor struct {
	key         Key
	paths       []Path
	annotations patch.Path
}

// New makes a Redactor for the paths and, unless they are to be recorded, the values of Secrets.
func New(key Key, secrets Secrets, paths []Path) (*Redactor, error) {
	annotations, err := patch.ParsePath(annotationsPrefix + "*")
	if err != nil {
		return nil, err
	}
	r := &Redactor{key: key, paths: paths, annotations: annotations}
	if secrets == Record {
		return r, nil
	}
	own, err := ParsePaths(secretPaths)
	if err != nil {
		return nil, err
	}
	r.paths = append(own, paths...)
	return r, nil
}

// For is the redaction of one resource; nil when there is nothing to replace.
func (r *Redactor) For(gr schema.GroupResource) *Resource {
	var paths []patch.Path
	for _, p := range r.paths {
		if p.matches(gr) {
			paths = append(paths, p.path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return &Resource{
		key: r.key, gr: gr, paths: append(paths, r.annotations),
		clear:      clearExcept(paths),
		structured: gr == schema.GroupResource{Resource: "secrets"} && !selects(paths, lastAppliedKey),
	}
}

// Resource replaces values in the objects of one resource.
type Resource struct {
	key   Key
	gr    schema.GroupResource
	paths []patch.Path

	clear      map[string]bool // annotations that are not hashed, by pointer
	structured bool            // last-applied-configuration may keep its structure
}

// Apply gives a served text with each value replaced. On an error the text must not be recorded.
func (r *Resource) Apply(doc patch.Doc, namespace, name string) (patch.Doc, error) {
	return object{Resource: r, namespace: namespace, name: name}.redact(doc)
}

// Reapply gives a text of the record, or of the spool, under the present rules: what is a hash stays as it is.
// On an error the text must not be written again.
func (r *Resource) Reapply(doc patch.Doc) (patch.Doc, error) {
	return object{Resource: r, namespace: stringAt(doc, "/metadata/namespace"), name: stringAt(doc, "/metadata/name"), redacted: true}.redact(doc)
}

func stringAt(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	text, _ := patch.Unquote(value)
	return string(text)
}

// object is one object whose values are replaced.
type object struct {
	*Resource
	namespace, name string
	redacted        bool // before: its hashes stay
}

func (o object) redact(doc patch.Doc) (patch.Doc, error) {
	out, err := patch.Rewrite(doc, o.paths, func(pointer string, value patch.Doc) (patch.Doc, error) {
		if pointer == lastApplied && o.structured {
			return o.applied(value), nil
		}
		return o.replace(pointer, value), nil
	})
	if err != nil {
		return nil, fmt.Errorf("redact %s %s/%s: %w", o.gr, o.namespace, o.name, err)
	}
	return out, nil
}

// replace gives what stands for a value.
func (o object) replace(pointer string, value patch.Doc) patch.Doc {
	switch {
	case o.clear[pointer] && isText(value):
		return value
	case o.redacted && o.key.made(value):
		return value
	}
	return o.key.hash(value, o.gr.Group, o.gr.Resource, o.namespace, o.name, pointer)
}

func isText(value patch.Doc) bool { return len(value) > 0 && value[0] == '"' }

// Package redact replaces values that must not reach a disk or a log by a keyed hash (I9).
//
// In addition to the value, a hash covers the group, resource, namespace, name and path. So a change of a value changes its hash, and equal
// values of two objects have different hashes. Each cluster has its own key (see FileKey).
//
// # Annotations
//
// Tools keep copies of whole objects in annotations. If a resource has a redacted path, then the value of each annotation is hashed too,
// except the few of clearAnnotations. One copy keeps its structure: last-applied-configuration of a Secret, if it is an object of kind
// Secret with only members that this package knows. The same rules apply within it.
//
// # Text that was redacted before
//
// Reapply takes text from the record or the spool, which may have been redacted under fewer rules. It keeps hashes and replaces all other
// values. A hash carries a mark that only the key can make, so Reapply also replaces a value that only looks like a hash. Apply takes
// text from a server, and replaces every value, even one that looks like a hash.
package redact

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/patch"
)

// Secrets is the treatment of the values of Secrets.
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

// ParsePaths parses several paths. The error names every invalid path.
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
	// ParsePath has checked the patterns.
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

// New returns a Redactor for the paths. Unless secrets is Record, it also hashes the values of Secrets.
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

// For returns the redaction of one resource, or nil if there is nothing to replace.
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

// Apply returns a served text with each selected value replaced. After an error, the text must not be recorded.
func (r *Resource) Apply(doc patch.Doc, namespace, name string) (patch.Doc, error) {
	return object{Resource: r, namespace: namespace, name: name}.redact(doc)
}

// Reapply returns a text of the record or the spool under the current rules. Hashes stay. After an error, the text must not be written
// again.
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
	redacted        bool // the object was redacted before, so its hashes stay
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

// replace returns the text that replaces a value.
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

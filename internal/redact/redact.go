// Package redact replaces values that must not reach a disk or a log by a keyed hash (I9).
//
// A hash is HMAC-SHA-256 over the resource, namespace, name, path and value: a change of the value shows as a change of
// the hash, and equal values of two objects do not show as equal. The annotation that kubectl apply leaves holds a copy
// of the object as text; the same paths are replaced inside it with the same hashes, and where that text cannot be read
// the whole of it is replaced.
package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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

const lastApplied = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"

// Path is a place in the objects of some resources.
type Path struct {
	resource, group string
	anyGroup        bool
	path            patch.Path
}

var secretPaths = []string{"secrets.:/data/*", "secrets.:/stringData/*"}

// ParsePath reads resource[.group]:/path, where * in the path stands for every member or element and resource and
// group are glob patterns; without a group it holds for every group, a trailing dot means the core group.
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
	key   Key
	paths []Path
}

// New makes a Redactor for the paths and, unless they are to be recorded, the values of Secrets.
func New(key Key, secrets Secrets, paths []Path) (*Redactor, error) {
	r := &Redactor{key: key, paths: paths}
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
	return &Resource{key: r.key, gr: gr, paths: paths}
}

// Resource replaces values in the objects of one resource.
type Resource struct {
	key   Key
	gr    schema.GroupResource
	paths []patch.Path
}

// Apply gives the text with each value replaced. On an error the text must not be recorded.
func (r *Resource) Apply(doc patch.Doc, namespace, name string) (patch.Doc, error) {
	hash := func(pointer string, value patch.Doc) (patch.Doc, error) {
		return r.hash(namespace, name, pointer, value), nil
	}
	out, err := patch.Rewrite(doc, r.paths, hash)
	if err != nil {
		return nil, fmt.Errorf("redact %s %s/%s: %w", r.gr, namespace, name, err)
	}
	applied, ok := patch.Get(out, lastApplied)
	if !ok {
		return out, nil
	}
	out, err = patch.Set(out, lastApplied, r.applied(applied, namespace, name))
	if err != nil {
		return nil, fmt.Errorf("redact last-applied-configuration of %s %s/%s: %w", r.gr, namespace, name, err)
	}
	return out, nil
}

// applied redacts the object inside the annotation.
func (r *Resource) applied(annotation patch.Doc, namespace, name string) patch.Doc {
	whole := r.hash(namespace, name, lastApplied, annotation)
	text, ok := patch.Unquote(annotation)
	if !ok {
		return whole
	}
	inner, err := patch.Canonical(text)
	if err != nil {
		return whole
	}
	inner, err = patch.Rewrite(inner, r.paths, func(pointer string, value patch.Doc) (patch.Doc, error) {
		return r.hash(namespace, name, pointer, value), nil
	})
	if err != nil {
		return whole
	}
	return patch.Quote(inner)
}

func (r *Resource) hash(namespace, name, pointer string, value patch.Doc) patch.Doc {
	mac := hmac.New(sha256.New, r.key.bytes[:])
	for _, part := range []string{r.gr.Group, r.gr.Resource, namespace, name, pointer} {
		mac.Write([]byte(part))
		mac.Write([]byte{0})
	}
	mac.Write(value)
	// 128 bits are enough to tell versions of one value apart, and half as long to read.
	return patch.Quote([]byte("hmac-sha256:" + hex.EncodeToString(mac.Sum(nil)[:16])))
}

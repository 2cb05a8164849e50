package snapshot

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/patch"
)

// write writes an object, unless the form skips it. If YAML cannot represent an object, write adds it to the manifest, and
// the snapshot continues.
func (f *form) write(to *target, resource schema.GroupResource, key string, doc patch.Doc) error {
	made, err := f.of(resource, doc)
	if err == nil && made == nil {
		return nil
	}
	var text []byte
	if err == nil {
		text, err = to.text(made)
	}
	name := resource.String() + " " + key
	if err != nil {
		f.manifest.Unwritten = append(f.manifest.Unwritten, fmt.Sprintf("%s: %v", name, err))
		return nil
	}
	if !to.json || !f.asIs {
		if replaced := output.ReplacedNote(name, render.Replaced(doc), !to.json); replaced != "" {
			f.manifest.Replaced = append(f.manifest.Replaced, replaced)
		}
	}
	if err := to.write(f.directory(resource), resource, made, text); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	f.manifest.count(resource)
	return nil
}

// unwritten returns an error for each object that YAML cannot represent.
func (f *form) unwritten() error {
	hint := ""
	if f.asIs {
		hint = "; use --format json to write it"
	}
	var errs []error
	for _, text := range f.manifest.Unwritten {
		errs = append(errs, fmt.Errorf("skipped: %s%s", render.Line(text), hint))
	}
	return errors.Join(errs...)
}

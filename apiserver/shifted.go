package apiserver

import (
	"context"
	"io"
	"iter"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kuberewind/kuberewind/apiserver/internal/state"
	"github.com/kuberewind/kuberewind/internal/timeshift"
	"github.com/kuberewind/kuberewind/patch"
)

// ShiftedHeader has the shift of the times of an answer. Answers without a shift have no such header.
const ShiftedHeader = "Kuberewind-Shifted"

// shiftedName is the part of the URL of a root with shifted times.
const shiftedName = "shifted"

// Shifted returns the root with shifted times for a root from Path. In it, each time is as long before now as the original
// was before the instant.
func Shifted(root string) string {
	uid, rest, _ := strings.Cut(strings.TrimPrefix(root, "/clusters/"), "/")
	return "/clusters/" + uid + "/" + shiftedName + "/" + rest
}

// shiftedRoot gives the answers of another root with shifted times.
type shiftedRoot struct{ root }

type shiftedKey struct{}

func (s shiftedRoot) serve(w http.ResponseWriter, r *http.Request) error {
	return s.root.serve(w, r.WithContext(context.WithValue(r.Context(), shiftedKey{}, true)))
}

// shiftedForm shifts the times of objects, and then writes them in another form.
type shiftedForm struct {
	form
	call *call

	mu    sync.Mutex // protects paths: several goroutines write objects
	paths map[string][]patch.Path
}

// shift makes the call write shifted times if the URL requests it.
func (c *call) shift(r *http.Request) {
	if asked, _ := r.Context().Value(shiftedKey{}).(bool); asked {
		c.form = &shiftedForm{form: c.form, call: c, paths: map[string][]patch.Path{}}
	}
}

// by returns the shift. It has whole seconds, so that times keep their form, and clients that count whole seconds see the
// same ages.
func (f *shiftedForm) by() time.Duration {
	return time.Now().Truncate(time.Second).Sub(f.call.time.Truncate(time.Second))
}

// shifting also shifts the reference time for the ages in tables, until the caller calls back.
func (f *shiftedForm) shifting() (by time.Duration, back func()) {
	exact := f.call.time
	by = f.by()
	f.call.time = exact.Add(by)
	return by, func() { f.call.time = exact }
}

func (f *shiftedForm) one(ctx context.Context, e *state.Entry) ([]byte, error) {
	by, back := f.shifting()
	defer back()
	moved, err := f.entry(ctx, e, by)
	if err != nil {
		return nil, err
	}
	return f.form.one(ctx, moved)
}

func (f *shiftedForm) list(ctx context.Context, w io.Writer, meta metav1.ListMeta, entries iter.Seq[*state.Entry]) error {
	by, back := f.shifting()
	defer back()
	var failed error
	err := f.form.list(ctx, w, meta, func(yield func(*state.Entry) bool) {
		for e := range entries {
			var moved *state.Entry
			if moved, failed = f.entry(ctx, e, by); failed != nil || !yield(moved) {
				return
			}
		}
	})
	if failed != nil {
		return failed
	}
	return err
}

func (f *shiftedForm) entry(ctx context.Context, e *state.Entry, by time.Duration) (*state.Entry, error) {
	paths, err := f.times(ctx, e.APIVersion)
	if err != nil {
		return nil, err
	}
	moved := *e
	moved.Body, err = timeshift.Move(e.Body, paths, func(t time.Time) time.Time { return t.Add(by) })
	return &moved, err
}

// times returns the paths of the times in a recorded object of a version. For a built-in kind they come from its Go type,
// otherwise from the kind's definition.
func (f *shiftedForm) times(ctx context.Context, apiVersion string) ([]patch.Path, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if paths, ok := f.paths[apiVersion]; ok {
		return paths, nil
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	kind := version.WithKind(f.call.resource.Kind.Kind)
	var paths []patch.Path
	switch object, err := legacyscheme.Scheme.New(kind); {
	case err == nil:
		paths = timeshift.TypePaths(reflect.TypeOf(object))
	case foreign[kind.Group]: // An APIService has times at the same paths as a CustomResourceDefinition: in its metadata and conditions.
		paths = timeshift.TypePaths(reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]())
	default:
		definition, err := f.call.at.definition(ctx, f.call.resource.GroupResource())
		if err != nil {
			return nil, err
		}
		paths = timeshift.DefinitionPaths(definition, version.Version)
	}
	f.paths[apiVersion] = paths
	return paths, nil
}

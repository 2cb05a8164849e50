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

// ShiftedHeader names by how much the times of an answer are shifted. The answer of a root that shifts none has no such header.
const ShiftedHeader = "Kuberewind-Shifted"

// shiftedName stands in the URL of a root whose times are shifted.
const shiftedName = "shifted"

// Shifted is the form of a root that Path gives. In it, each time is as long before now as it was before the instant.
func Shifted(root string) string {
	uid, rest, _ := strings.Cut(strings.TrimPrefix(root, "/clusters/"), "/")
	return "/clusters/" + uid + "/" + shiftedName + "/" + rest
}

// shiftedRoot answers as another root does, with shifted times.
type shiftedRoot struct{ root }

type shiftedKey struct{}

func (s shiftedRoot) serve(w http.ResponseWriter, r *http.Request) error {
	return s.root.serve(w, r.WithContext(context.WithValue(r.Context(), shiftedKey{}, true)))
}

// shiftedForm writes objects in another form, after their times were shifted.
type shiftedForm struct {
	form
	call *call

	mu    sync.Mutex // protects paths: objects come in several goroutines
	paths map[string][]patch.Path
}

// shift has the call write shifted times, if the URL asks for that.
func (c *call) shift(r *http.Request) {
	if asked, _ := r.Context().Value(shiftedKey{}).(bool); asked {
		c.form = &shiftedForm{form: c.form, call: c, paths: map[string][]patch.Path{}}
	}
}

// by is how much times are shifted. Whole seconds keep the form of times, and the ages that clients count in whole seconds.
func (f *shiftedForm) by() time.Duration {
	return time.Now().Truncate(time.Second).Sub(f.call.time.Truncate(time.Second))
}

// shifting shifts the time to which tables count ages, too, until the function is called.
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

// times are the paths of the times of a recorded object in a version. The Go type of a built-in kind tells them, or else the
// kind's definition.
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
	case foreign[kind.Group]: // The times of an APIService are those of a CustomResourceDefinition: of the metadata and the conditions.
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

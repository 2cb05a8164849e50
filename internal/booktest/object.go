package booktest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// An Object is one version of an object, as a server could serve it.
type Object struct {
	Namespace, Name, UID, RV string
	Content                  patch.Doc
}

// GetNamespace returns the namespace, or "".
func (o *Object) GetNamespace() string { return o.Namespace }

// GetName returns the name.
func (o *Object) GetName() string { return o.Name }

// GetUID returns the UID.
func (o *Object) GetUID() types.UID { return types.UID(o.UID) }

// GetResourceVersion returns the resource version.
func (o *Object) GetResourceVersion() string { return o.RV }

// Doc returns the object in canonical form.
func (o *Object) Doc() patch.Doc { return o.Content }

// Key returns the object's name with its namespace.
func (o *Object) Key() string { return Key(o.Namespace, o.Name) }

// Key returns a name with its namespace.
func Key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Be sets the UID of the version: an object that is created again under a name has another life.
func (o *Object) Be(uid string) {
	o.Content = patch.Doc(strings.Replace(string(o.Content), fmt.Sprintf(`"uid":%q`, o.UID), fmt.Sprintf(`"uid":%q`, uid), 1))
	o.UID = uid
}

// NewObject returns a version of an object of a stream.
func NewObject(t testing.TB, of postgres.StreamSpec, rv int, namespace, name, uid, metadata, fields string) *Object {
	t.Helper()
	if namespace != "" {
		metadata += fmt.Sprintf(`"namespace":%q,`, namespace)
	}
	doc, err := patch.Canonical(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{%s"name":%q,"uid":%q,"resourceVersion":"%d"}%s}`,
		strings.TrimPrefix(of.Group+"/"+of.Version, "/"), of.Kind, metadata, name, uid, rv, fields))
	require.NoError(t, err)
	return &Object{Namespace: namespace, Name: name, UID: uid, RV: strconv.Itoa(rv), Content: doc}
}

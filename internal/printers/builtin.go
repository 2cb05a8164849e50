package printers

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeprinters "k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"

	"github.com/kuberewind/kuberewind/patch"

	// registers the types that internalversion prints but does not register
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"
)

// builtin wraps the printers of kube-apiserver, which take the internal version of an object.
type builtin struct {
	generator *kubeprinters.HumanReadableGenerator
}

func newBuiltin() *builtin {
	return &builtin{generator: kubeprinters.NewTableGenerator().With(internalversion.AddHandlers)}
}

// style returns the style of a kind, if the printers know its version.
func (b *builtin) style(gvk schema.GroupVersionKind) (style, bool) {
	if !legacyscheme.Scheme.Recognizes(gvk) {
		return nil, false
	}
	empty, err := legacyscheme.Scheme.New(gvk)
	if err != nil {
		return nil, false
	}
	table, err := b.table(empty)
	if err != nil {
		return nil, false
	}
	return &builtinStyle{builtin: b, kind: gvk, definitions: table.ColumnDefinitions}, true
}

type builtinStyle struct {
	builtin     *builtin
	kind        schema.GroupVersionKind
	definitions []metav1.TableColumnDefinition
}

func (s *builtinStyle) columns() []metav1.TableColumnDefinition { return s.definitions }

func (s *builtinStyle) cells(doc []byte, shift func() time.Duration) ([]any, []metav1.TableRowCondition, error) {
	object, err := s.decode(doc)
	if err != nil {
		return nil, nil, err
	}
	legacyscheme.Scheme.Default(object)
	shiftTimes(object, shift())
	table, err := s.builtin.table(object)
	if err != nil {
		return nil, nil, err
	}
	if len(table.Rows) != 1 {
		return nil, nil, fmt.Errorf("%d rows for one object", len(table.Rows))
	}
	return table.Rows[0].Cells, table.Rows[0].Conditions, nil
}

// decode decodes an object without managedFields: no printer shows them, and they are half of the text of many objects.
func (s *builtinStyle) decode(doc []byte) (runtime.Object, error) {
	if short, err := patch.Set(doc, "/metadata/managedFields", patch.Doc("null")); err == nil {
		doc = short
	}
	object, err := s.typed(doc)
	if err == nil || s.kind.Kind != "Secret" {
		return object, err
	}
	// Hashes in place of values are not base64. The printer shows only the number of values.
	if doc, err = withoutValues(doc); err != nil {
		return nil, err
	}
	return s.typed(doc)
}

func (s *builtinStyle) typed(doc []byte) (runtime.Object, error) {
	object, err := legacyscheme.Scheme.New(s.kind)
	if err != nil {
		return nil, err
	}
	return object, json.Unmarshal(doc, object)
}

// withoutValues empties the values of a Secret.
func withoutValues(doc []byte) ([]byte, error) {
	var secret map[string]any
	if err := json.Unmarshal(doc, &secret); err != nil {
		return nil, err
	}
	if data, ok := secret["data"].(map[string]any); ok {
		for key := range data {
			data[key] = ""
		}
	}
	return json.Marshal(secret)
}

func (b *builtin) table(object runtime.Object) (*metav1.Table, error) {
	internal, err := legacyscheme.Scheme.UnsafeConvertToVersion(object, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, err
	}
	return b.generator.GenerateTable(internal, kubeprinters.GenerateOptions{Wide: true})
}

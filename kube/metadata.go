package kube

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// metadata has the decoded fields of an object's metadata. The decoder skips the large ones without parsing them.
type metadata struct {
	Name              string                  `json:"name"`
	GenerateName      string                  `json:"generateName"`
	Namespace         string                  `json:"namespace"`
	UID               string                  `json:"uid"`
	ResourceVersion   string                  `json:"resourceVersion"`
	Generation        int64                   `json:"generation"`
	CreationTimestamp timestamp               `json:"creationTimestamp"`
	DeletionTimestamp timestamp               `json:"deletionTimestamp"`
	DeletionGrace     *int64                  `json:"deletionGracePeriodSeconds"`
	Labels            map[string]string       `json:"labels"`
	Annotations       skipped                 `json:"annotations"`
	OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	Finalizers        []string                `json:"finalizers"`
	ManagedFields     []managedFields         `json:"managedFields"`
}

type managedFields struct {
	Manager     string    `json:"manager"`
	Operation   string    `json:"operation"`
	APIVersion  string    `json:"apiVersion"`
	Time        timestamp `json:"time"`
	FieldsType  string    `json:"fieldsType"`
	FieldsV1    skipped   `json:"fieldsV1"`
	Subresource string    `json:"subresource"`
}

// fill puts the decoded metadata into an ObjectMeta.
func (m *metadata) fill(into *metav1.ObjectMeta) {
	*into = metav1.ObjectMeta{
		Name:                       m.Name,
		GenerateName:               m.GenerateName,
		Namespace:                  m.Namespace,
		UID:                        types.UID(m.UID),
		ResourceVersion:            m.ResourceVersion,
		Generation:                 m.Generation,
		CreationTimestamp:          metav1.Time{Time: m.CreationTimestamp.Time},
		DeletionTimestamp:          m.DeletionTimestamp.pointer(),
		DeletionGracePeriodSeconds: m.DeletionGrace,
		Labels:                     m.Labels,
		OwnerReferences:            m.OwnerReferences,
		Finalizers:                 m.Finalizers,
	}
	if len(m.ManagedFields) > 0 {
		into.ManagedFields = make([]metav1.ManagedFieldsEntry, len(m.ManagedFields))
	}
	for i := range m.ManagedFields {
		m.ManagedFields[i].fill(&into.ManagedFields[i])
	}
}

func (m *managedFields) fill(into *metav1.ManagedFieldsEntry) {
	*into = metav1.ManagedFieldsEntry{
		Manager:     m.Manager,
		Operation:   metav1.ManagedFieldsOperationType(m.Operation),
		APIVersion:  m.APIVersion,
		Time:        m.Time.pointer(),
		FieldsType:  m.FieldsType,
		Subresource: m.Subresource,
	}
}

// timestamp is an RFC 3339 time. It is zero for null and for the empty string, as in metav1.Time.
type timestamp struct{ time.Time }

func (t *timestamp) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	*t = timestamp{}
	text := token.String()
	if token.Kind() == jsontext.KindNull || token.Kind() == jsontext.KindString && text == "" {
		return nil
	}
	t.Time, err = time.Parse(time.RFC3339, text)
	return err
}

// pointer returns nil for the zero time.
func (t timestamp) pointer() *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.Time}
}

// skipped is a JSON value of any type that the decoder skips.
type skipped struct{}

func (*skipped) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	_, err := dec.ReadValue()
	return err
}

package kube

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var (
	pods    = Resource{Version: "v1", Name: "pods", Kind: "Pod", Namespaced: true}
	widgets = Resource{Group: "example.com", Version: "v1", Name: "widgets"}
)

func reader(text string) io.Reader { return strings.NewReader(text) }

func TestTheBytesOfAnObjectAreKeptAndItsMetadataIsDecoded(t *testing.T) {
	text := `{ "apiVersion":"v1", "kind":"Pod","spec":{"n": 12345678901234567890.10, "n":1e2},
		"metadata" : {"name":"a\u0062","namespace":"ns","uid":"u","resourceVersion":"12","generation":3,"generateName":"g-",
		"creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-01-02T00:00:00Z","deletionGracePeriodSeconds":30,
		"labels":{"k":"v"},"finalizers":["f"],"selfLink":"/x","unknown":[{}],
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"o","uid":"ou","controller":true}],
		"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","time":"2026-01-03T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:a":{"f:b":{}}},"subresource":"status"}]},
		"data":"\u0000\ud800` + "\xff" + `" }`
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
		"with the end in the last read": iotest.DataErrReader,
	} {
		t.Run(name, func(t *testing.T) {
			list, err := decodePage(wrap(reader(`{"kind":"PodList","apiVersion":"v1","items":[`+text+"\n,"+text+`]}`)), pods, 1<<20, 1<<30)
			require.NoError(t, err)
			require.Len(t, list.Items, 2)
			o := list.Items[1]
			require.Equal(t, text, string(o.JSON))
			yes, grace := true, int64(30)
			deleted, written := metav1.NewTime(at(t, "2026-01-02T00:00:00Z")), metav1.NewTime(at(t, "2026-01-03T00:00:00Z"))
			require.Equal(t, metav1.ObjectMeta{
				Name: "ab", Namespace: "ns", UID: "u", ResourceVersion: "12", Generation: 3, GenerateName: "g-",
				CreationTimestamp: metav1.NewTime(at(t, "2026-01-01T00:00:00Z")), DeletionTimestamp: &deleted, DeletionGracePeriodSeconds: &grace,
				Labels: map[string]string{"k": "v"}, Finalizers: []string{"f"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "o", UID: "ou", Controller: &yes}},
				ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Apply", APIVersion: "v1", Time: &written, FieldsType: "FieldsV1", Subresource: "status"}},
			}, o.ObjectMeta)
			require.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, o.TypeMeta)
		})
	}
}

func TestItemsWithoutTypeGetTheTypeOfTheList(t *testing.T) {
	list := func(item string) string {
		return `{"items":[` + item + `],"kind":"WidgetList","apiVersion":"example.com/v1"}`
	}
	tests := map[string]struct {
		resource   Resource
		item, want string
	}{
		"both":                {widgets, `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"},"apiVersion":"example.com/v1","kind":"Widget"}`},
		"kind by discovery":   {Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Gadget"}, `{"metadata":{}}`, `{"metadata":{},"apiVersion":"example.com/v1","kind":"Gadget"}`},
		"only the kind":       {widgets, `{"apiVersion":"x/v2"}`, `{"apiVersion":"x/v2","kind":"Widget"}`},
		"an empty one":        {widgets, `{ }`, `{ "apiVersion":"example.com/v1","kind":"Widget"}`},
		"a kind that is \"\"": {widgets, `{"kind":"","apiVersion":"x/v2"}`, `{"kind":"","apiVersion":"x/v2","kind":"Widget"}`},
		"none":                {widgets, `{"kind":"W","apiVersion":"x/v2"}`, `{"kind":"W","apiVersion":"x/v2"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := decodePage(reader(list(test.item)), test.resource, 1<<20, 1<<30)
			require.NoError(t, err)
			o := got.Items[0]
			require.Equal(t, test.want, string(o.JSON))
			var own metav1.TypeMeta
			require.NoError(t, json.Unmarshal(o.JSON, &own))
			require.Equal(t, own, o.TypeMeta)
		})
	}
}

func TestAListOfNothingIsEmpty(t *testing.T) {
	for _, items := range []string{`null`, `[]`, ` [ ] `} {
		list, err := decodePage(reader(`{"metadata":{"resourceVersion":"5"},"items":`+items+`}`), pods, 1<<20, 1<<30)
		require.NoError(t, err)
		require.Empty(t, list.Items)
		require.Equal(t, "5", list.ResourceVersion)
	}
}

func TestAnItemThatCannotBeDecodedDoesNotFailTheList(t *testing.T) {
	list, err := decodePage(reader(`{"items":[
		{"metadata":{"name":"first"}}, null, {"metadata":{"namespace":"ns","name":"bad","labels":{"a":[{"b":1}]},"uid":"u"},"spec":{}},
		{"metadata":{"name":"when","creationTimestamp":"yesterday"}}, 7, {"kind":[1,{}],"metadata":{"name":"kind"}}, {"metadata":{"name":"last"}}],
		"metadata":{"resourceVersion":"9","continue":"next","remainingItemCount":3}}`), pods, 1<<20, 1<<30)
	require.NoError(t, err)
	var names []string
	for _, o := range list.Items {
		names = append(names, o.Name)
	}
	require.Equal(t, []string{"first", "last"}, names)
	require.Equal(t, "9", list.ResourceVersion)
	require.Equal(t, int64(3), *list.RemainingItemCount)
	require.Len(t, list.Undecodable(), 5)
	var bad *UndecodableError
	require.ErrorAs(t, list.Undecodable()[1], &bad)
	require.Equal(t, "bad", bad.Name)
	require.Equal(t, 2, bad.Index)
	require.ErrorContains(t, bad, "item 2 of the list of v1 pods (ns/bad) cannot be decoded")
	require.ErrorContains(t, list.Undecodable()[0], "expected a JSON object, found null")
	require.ErrorContains(t, list.Undecodable()[2], "yesterday")
}

func TestObjectsWithTheSameNameOrWithoutIdentityAreAllKept(t *testing.T) {
	list, err := decodePage(reader(`{"items":[{"metadata":{"name":"a","uid":"1"}},{"metadata":{"name":"a","uid":"2"}},{"metadata":{"name":"b"}},{}]}`), pods, 1<<20, 1<<30)
	require.NoError(t, err)
	require.Empty(t, list.Undecodable())
	var uids []types.UID
	for _, o := range list.Items {
		uids = append(uids, o.UID)
		require.Empty(t, o.ResourceVersion)
	}
	require.Equal(t, []types.UID{"1", "2", "", ""}, uids)
}

func TestAnAnswerThatIsNoListIsAnError(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"cut in an item":  {`{"items":[{"metadata":{"name":"a"}},{"metadata":{"na`, "list of v1 pods: after 1 items"},
		"cut at the end":  {`{"items":[{"metadata":{"name":"a"}}]`, "unexpected EOF"},
		"empty":           {``, "unexpected EOF"},
		"garbage":         {`{"items":[{"metadata":{"name":"a"}},{]}`, "after 1 items"},
		"not JSON":        {`<html>`, "invalid character '<'"},
		"a status":        {`{"kind":"Status","apiVersion":"v1","message":"go away"}`, "the response is a v1 Status without items: go away"},
		"an array":        {`[]`, "expected a JSON object, found ["},
		"items of a kind": {`{"items":"none"}`, "items is a JSON string"},
		"two lists":       {`{"items":[]}{"items":[]}`, "more JSON follows"},
		"bad metadata":    {`{"metadata":{"resourceVersion":7},"items":[]}`, "resourceVersion"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := decodePage(reader(test.text), pods, 1<<20, 1<<30)
			require.ErrorContains(t, err, test.want)
			if strings.HasPrefix(name, "cut") {
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			}
		})
	}
	_, err := decodePage(io.MultiReader(reader(`{"items":[{"metadata":`), iotest.ErrReader(os.ErrDeadlineExceeded)), pods, 1<<20, 1<<30)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestTheItemLimitBoundsOneItemAndNotTheirSum(t *testing.T) {
	const limit = 128 << 10
	item := func(name string, size int) string {
		return `{"metadata":{"namespace":"ns","name":"` + name + `"},"data":"` + strings.Repeat("x", size) + `"}`
	}
	fitting := strings.Repeat(item("small", limit/2)+",", 20)
	list, err := decodePage(reader(`{"items":[`+fitting+item("last", limit/2)+`]}`), pods, limit, 1<<30)
	require.NoError(t, err)
	require.Len(t, list.Items, 21)

	_, err = decodePage(reader(`{"items":[`+fitting+item("huge", 3*limit)+`]}`), pods, limit, 1<<30)
	var large *FrameTooLargeError
	require.ErrorAs(t, err, &large)
	require.Equal(t, FrameTooLargeError{Limit: limit, Namespace: "ns", Name: "huge"}, *large)
}

func TestTheBufferOfALargeItemIsReleased(t *testing.T) {
	large := `{"metadata":{"name":"a"},"data":"` + strings.Repeat("x", 4*shrinkAbove) + `"}`
	s := newScanner(reader(large+strings.Repeat(`{"metadata":{"name":"b"}}`, 10_000)), 1<<30)
	for range 10_001 {
		s.input.mark(s.dec.InputOffset())
		_, err := s.item(&Object{})
		require.NoError(t, err)
	}
	require.Less(t, cap(s.input.buffer), shrinkAbove)
}

// samplePod returns a pod of about 5 KB with managedFields.
func samplePod(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/pod.json")
	require.NoError(t, err)
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, text))
	return compact.Bytes()
}

func TestMetadataEqualsWhatUpstreamDecodes(t *testing.T) {
	text := samplePod(t)
	var pod corev1.Pod
	require.NoError(t, json.Unmarshal(text, &pod))
	o := parse(t, string(text))
	require.Equal(t, pod.Annotations, o.GetAnnotations())
	pod.Annotations = nil
	for i := range pod.ManagedFields {
		pod.ManagedFields[i].FieldsV1 = nil
		*pod.ManagedFields[i].Time = metav1.Time{Time: pod.ManagedFields[i].Time.UTC()}
	}
	pod.CreationTimestamp = metav1.Time{Time: pod.CreationTimestamp.UTC()}
	require.Equal(t, pod.ObjectMeta, o.ObjectMeta)
}

func FuzzAListOfAnythingNeverPanicsAndKeepsTheBytes(f *testing.F) {
	f.Add(`{"metadata":{"name":"a"}}`)
	f.Add(`{"metadata":{"labels":{"a":1}},"kind":null}`)
	f.Add(`{"metadata":null,"metadata":{"name":"b","managedFields":[{"fieldsV1":[]}]}}`)
	f.Add(`{"\u006detadata":{}}`)
	f.Fuzz(func(t *testing.T, item string) {
		list, err := decodePage(reader(`{"items":[`+item+`]}`), pods, 1<<20, 1<<30)
		if err != nil {
			return
		}
		for _, o := range list.Items {
			require.True(t, json.Valid(o.JSON), "%q", o.JSON)
			if len(list.Items) == 1 && len(list.Undecodable()) == 0 {
				require.Contains(t, string(o.JSON), strings.TrimSuffix(strings.TrimSpace(item), "}"))
			}
		}
		for _, err := range list.Undecodable() {
			require.ErrorAs(t, err, new(*UndecodableError))
		}
	})
}

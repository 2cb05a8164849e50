package kube

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kuberewind/kuberewind/patch"
)

// parse returns one object.
func parse(t testing.TB, text string) *Object {
	t.Helper()
	list, err := decodePage(reader(`{"items":[`+text+`]}`), pods, 1<<20, 1<<30)
	require.NoError(t, err)
	require.Empty(t, list.Undecodable())
	return list.Items[0]
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return parsed
}

func TestEvidenceTimeIsTheNewestTimeInTheMetadata(t *testing.T) {
	tests := map[string]struct{ metadata, want string }{
		"a write":    {`"creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"time":"2026-01-03T00:00:00Z"},{"time":"2026-01-02T00:00:00Z"}]`, "2026-01-03T00:00:00Z"},
		"a creation": {`"creationTimestamp":"2026-01-01T00:00:00Z"`, "2026-01-01T00:00:00Z"},
		"a request to delete, before its grace period": {`"creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-01-02T00:00:30Z","deletionGracePeriodSeconds":30`, "2026-01-02T00:00:00Z"},
		"a write after that request":                   {`"deletionTimestamp":"2026-01-02T00:00:30Z","deletionGracePeriodSeconds":30,"managedFields":[{"time":"2026-01-02T00:00:10Z"}]`, "2026-01-02T00:00:10Z"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := parse(t, `{"metadata":{`+test.metadata+`}}`).EvidenceTime()
			require.True(t, ok)
			require.True(t, at(t, test.want).Equal(got), got)
		})
	}
	_, ok := parse(t, `{"metadata":{"creationTimestamp":null}}`).EvidenceTime()
	require.False(t, ok)
}

func TestTheCanonicalTextReplacesTheServersTextAndItsAnnotations(t *testing.T) {
	o := parse(t, `{"metadata":{"name":"a","annotations":{"secret":"value"}}}`)
	require.Equal(t, map[string]string{"secret": "value"}, o.GetAnnotations())
	before := o.Size()

	doc, err := patch.Canonical([]byte(`{"metadata":{"annotations":{"secret":"hash"},"name":"a"}}`))
	require.NoError(t, err)
	o.SetDoc(doc)

	require.Nil(t, o.JSON)
	require.Equal(t, doc, o.Doc())
	require.Equal(t, patch.Digest(doc), o.Digest())
	require.Equal(t, map[string]string{"secret": "hash"}, o.GetAnnotations())
	require.Less(t, o.Size(), before+len(doc))
	require.Greater(t, o.Size(), len(doc))
}

func TestACopyOfAnObjectSharesNothing(t *testing.T) {
	o := parse(t, `{"metadata":{"name":"a","labels":{"k":"v"},"annotations":{"x":"y"}}}`)
	c := o.DeepCopyObject().(*Object)
	require.Equal(t, o, c)
	c.JSON[0], c.Labels["k"] = 'x', "w"
	require.Equal(t, byte('{'), o.JSON[0])
	require.Equal(t, "v", o.Labels["k"])

	o.SetDoc(patch.Doc(`{}`))
	c = o.DeepCopyObject().(*Object)
	c.Doc()[0] = 'x'
	require.Equal(t, patch.Doc(`{}`), o.Doc())
	require.Equal(t, o.Digest(), c.Digest())
	require.Nil(t, (*Object)(nil).DeepCopyObject())
}

func TestUpstreamsHelpersWorkOnObjectsAndLists(t *testing.T) {
	list, err := decodePage(reader(`{"metadata":{"resourceVersion":"7","continue":"more"},"items":[{"metadata":{"name":"a","uid":"u","annotations":{"x":"y"}}}]}`), pods, 1<<20, 1<<30)
	require.NoError(t, err)

	listMeta, err := meta.ListAccessor(list)
	require.NoError(t, err)
	require.Equal(t, "7", listMeta.GetResourceVersion())
	require.Equal(t, "more", listMeta.GetContinue())
	objects, err := meta.ExtractListWithAlloc(list)
	require.NoError(t, err)
	require.Equal(t, []runtime.Object{list.Items[0]}, objects)
	require.NoError(t, meta.EachListItem(list, func(o runtime.Object) error {
		accessor, err := meta.Accessor(o)
		require.NoError(t, err)
		require.Equal(t, "a", accessor.GetName())
		require.Equal(t, map[string]string{"x": "y"}, accessor.GetAnnotations())
		require.Equal(t, "/v1, Kind=Pod", o.GetObjectKind().GroupVersionKind().String())
		return nil
	}))
	require.Equal(t, list, list.DeepCopyObject())
	require.NotSame(t, list.Items[0], list.DeepCopyObject().(*List).Items[0])
	require.Equal(t, &metav1.ObjectMeta{Name: "a", UID: "u"}, objects[0].(*Object).GetObjectMeta())
}

func TestAnObjectIsRestoredFromItsText(t *testing.T) {
	texts := []string{
		string(samplePod(t)), `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","labels":{"a":"\u00e9\"","b":"\u0000"},"finalizers":["f"]},"data":{"x":"y"}}`,
		`{"metadata":{"name":"a","managedFields":[{"manager":"m","time":"2026-01-02T00:00:01Z","fieldsV1":{"f:a":{}}}]}}`, `{}`,
	}
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			for _, text := range texts {
				want := canonical(t, parse(t, text))
				before := bytes.Clone(want.Doc())
				for _, bad := range []string{``, `{`, `[]`, `{"metadata":{"name":1}}`, `{"metadata":{"name":"a"`} {
					if _, err := Restore(patch.Doc(bad)); err == nil {
						return fmt.Errorf("%q is an object", bad)
					}
				}
				got, err := Restore(want.Doc())
				if err != nil {
					return err
				}
				// Decoding a list adds the missing types of its items.
				want.TypeMeta = got.TypeMeta
				if !assert.Equal(t, want, got) || !assert.Equal(t, string(before), string(want.Doc()), "the text is as it was") {
					return errors.New("not the same")
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
}

func BenchmarkRestore(b *testing.B) {
	doc := canonical(b, parse(b, string(samplePod(b)))).Doc()
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Restore(doc); err != nil {
			b.Fatal(err)
		}
	}
}

// canonical returns an object in its recorded form.
func canonical(t testing.TB, o *Object) *Object {
	doc, err := patch.Canonical(o.JSON)
	require.NoError(t, err)
	o.SetDoc(doc)
	return o
}

package indexer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/patch"
)

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1"},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func version(rv string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.ResourceVersion = rv }
}

func users(names string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{"users": names} }
}

func docOfPod(t testing.TB, p *corev1.Pod) patch.Doc {
	t.Helper()
	doc, err := docOf(p)
	require.NoError(t, err)
	return doc
}

// byUser is an index function of a caller. It fails and panics on demand.
func byUser(obj any) ([]string, error) {
	users := obj.(*unstructured.Unstructured).GetAnnotations()["users"]
	switch users {
	case "fail":
		return nil, errBadUser
	case "panic":
		panic("no such user")
	case "":
		return nil, nil
	}
	return strings.Split(users, ","), nil
}

var errBadUser = errors.New("bad user")

func keyOf(doc patch.Doc) string {
	return joined(text(doc, "/metadata/namespace"), text(doc, "/metadata/name"))
}

func names(objects []any) []string {
	found := make([]string, len(objects))
	for i, object := range objects {
		found[i] = object.(metav1.Object).GetName()
	}
	slices.Sort(found)
	return found
}

func found(t *testing.T, x cache.Indexer, index, value string) []string {
	t.Helper()
	objects, err := x.ByIndex(index, value)
	require.NoError(t, err)
	return names(objects)
}

func TestTheStoreHoldsTheLastWrittenVersionOfEachObject(t *testing.T) {
	x := New(nil, nil, Options{})
	require.NoError(t, x.Add(pod("a", version("1"))))
	item, exists, err := x.Get(pod("a"))
	require.NoError(t, err)
	require.True(t, exists)
	require.Equal(t, "1", item.(*unstructured.Unstructured).GetResourceVersion())

	require.NoError(t, x.Update(pod("a", version("2"))))
	item, _, _ = x.GetByKey("default/a")
	require.Equal(t, "2", item.(*unstructured.Unstructured).GetResourceVersion())

	require.NoError(t, x.Delete(pod("a")))
	_, exists, err = x.Get(pod("a"))
	require.NoError(t, err)
	require.False(t, exists)
	require.NoError(t, x.Delete(pod("a")), "deleting a missing object is no error")

	require.NoError(t, x.Replace([]any{pod("b"), pod("c"), pod("d")}, "7"))
	require.NoError(t, x.Replace([]any{pod("e"), pod("f")}, "8"))
	require.Equal(t, []string{"e", "f"}, names(x.List()))
	require.ElementsMatch(t, []string{"default/e", "default/f"}, x.ListKeys())
	require.Equal(t, 2, x.Len())
	require.NoError(t, x.Resync())
}

func TestATombstoneOrATextDeletesAnObject(t *testing.T) {
	x := New(nil, nil, Options{})
	require.NoError(t, x.Replace([]any{pod("a"), pod("b")}, "1"))
	require.NoError(t, x.Delete(cache.DeletedFinalStateUnknown{Key: "default/a"}))
	require.NoError(t, x.Delete(docOfPod(t, pod("b", version("9")))))
	require.Zero(t, x.Len())
	require.Equal(t, "9", x.LastStoreSyncResourceVersion())
}

func TestObjectsOfEveryTypeAreReturnedDecoded(t *testing.T) {
	x := New(nil, nil, Options{})
	typed := pod("typed", func(p *corev1.Pod) { p.Spec.Priority = new(int32) })
	text := `{ "metadata": {"name":"text", "namespace":"default"}, "apiVersion":"v1", "kind":"Pod", "n": 9007199254740993, "f": 1.5, "big": 1e400 }`
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "loose"}}}
	for _, object := range []any{typed, []byte(text), u, docOfPod(t, pod("doc")), &metav1.ObjectMeta{Name: "meta"}, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "partial"}}} {
		require.NoError(t, x.Add(object), "%T", object)
	}
	require.Equal(t, []string{"doc", "loose", "meta", "partial", "text", "typed"}, names(x.List()))
	item, _, err := x.GetByKey("default/text")
	require.NoError(t, err)
	object := item.(*unstructured.Unstructured).Object
	require.Equal(t, int64(9007199254740993), object["n"])
	require.InDelta(t, 1.5, object["f"], 0)
	require.Contains(t, fmt.Sprintf("%T", object["big"]), "json.Number")

	item, _, err = x.GetByKey("loose")
	require.NoError(t, err)
	require.Equal(t, u, item)
	require.NotSame(t, u, item)
}

func TestAnObjectThatCannotBeKeptIsRefused(t *testing.T) {
	x := New(nil, nil, Options{})
	for name, object := range map[string]any{
		"nothing": nil, "number": 100, "no JSON": []byte(`{"metadata":`), "no object": []byte(`[]`), "no metadata": []byte(`{"kind":"Pod"}`),
		"empty": []byte(nil), "metadata of another form": []byte(`{"metadata":"x"}`), "nil pointer": (*corev1.Pod)(nil), "nil object": (*unstructured.Unstructured)(nil),
		"tombstone": cache.DeletedFinalStateUnknown{Key: "default/a"},
	} {
		require.Error(t, x.Add(object), name)
		require.Error(t, x.Replace([]any{object}, "5"), name)
	}
	require.Zero(t, x.Len())
	require.Empty(t, x.LastStoreSyncResourceVersion())
}

func TestEachReaderGetsACopyOfItsOwn(t *testing.T) {
	x := New(nil, cache.Indexers{"user": byUser}, Options{})
	original := pod("a", users("ann"))
	require.NoError(t, x.Add(original))
	original.Annotations["users"] = "changed"
	item, _, _ := x.GetByKey("default/a")
	item.(*unstructured.Unstructured).SetAnnotations(map[string]string{"users": "bob"})
	require.Equal(t, []string{"a"}, found(t, x, "user", "ann"))
	item, _, _ = x.GetByKey("default/a")
	require.Equal(t, "ann", item.(*unstructured.Unstructured).GetAnnotations()["users"])
}

func TestAKeyFunctionThatFailsReturnsAKeyError(t *testing.T) {
	failing := func(any) (string, error) { return "", errBadUser }
	x := New(failing, nil, Options{})
	var keyError cache.KeyError
	for _, err := range []error{x.Add(pod("a")), x.Update(pod("a")), x.Delete(pod("a")), x.Replace([]any{pod("a")}, "1"), x.Add(docOfPod(t, pod("a")))} {
		require.ErrorAs(t, err, &keyError)
		require.ErrorIs(t, err, errBadUser)
	}
	_, _, err := x.Get(pod("a"))
	require.ErrorAs(t, err, &keyError)
}

func TestAKeyFunctionGetsTheMetadataOfAText(t *testing.T) {
	byOwnUID := func(obj any) (string, error) { return string(obj.(metav1.Object).GetUID()), nil }
	x := New(byOwnUID, nil, Options{})
	require.NoError(t, x.Add(docOfPod(t, pod("a"))))
	require.Equal(t, []string{"uid-a"}, x.ListKeys())
}

func TestTheStoreKnowsTheLastResourceVersion(t *testing.T) {
	x := New(nil, nil, Options{})
	require.Empty(t, x.LastStoreSyncResourceVersion())
	step := func(want string, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, want, x.LastStoreSyncResourceVersion())
	}
	step("10", x.Add(pod("a", version("10"))))
	step("20", x.Add(docOfPod(t, pod("b", version("20")))))
	step("30", x.Delete(pod("b", version("30"))))
	step("30", x.Delete(cache.DeletedFinalStateUnknown{Key: "default/x"}))
	x.Bookmark("35")
	step("35", nil)
	require.Nil(t, x.Transaction(
		cache.Transaction{Type: cache.TransactionTypeAdd, Object: pod("c", version("60"))},
		cache.Transaction{Type: cache.TransactionTypeUpdate, Object: pod("d", version("50"))},
	))
	step("50", nil)
	step("70", x.Replace([]any{pod("a", version("65"))}, "70"))
}

func TestATransactionSkipsAndReportsChangesThatFail(t *testing.T) {
	x := New(nil, cache.Indexers{"user": byUser}, Options{})
	require.NoError(t, x.Add(pod("old", users("ann"))))
	failed := x.Transaction(
		cache.Transaction{Type: cache.TransactionTypeAdd, Object: pod("a", users("ann"))},
		cache.Transaction{Type: cache.TransactionTypeAdd, Object: 100},
		cache.Transaction{Type: cache.TransactionTypeUpdate, Object: pod("b", users("panic"))},
		cache.Transaction{Type: cache.TransactionTypeDelete, Object: pod("old")},
		cache.Transaction{Type: "Patch", Object: pod("a")},
	)
	require.Equal(t, []int{0, 3}, failed.SuccessfulIndices)
	require.Equal(t, 5, failed.TotalTransactions)
	require.Len(t, failed.Errors, 3)
	require.Equal(t, []string{"a"}, found(t, x, "user", "ann"))
	require.Nil(t, x.Transaction())
}

func TestAnIndexFollowsItsObjects(t *testing.T) {
	x := New(nil, cache.Indexers{"user": byUser}, Options{})
	require.NoError(t, x.Add(pod("one", users("ernie,bert"))))
	require.NoError(t, x.Add(pod("two", users("bert,oscar,bert"))))
	require.NoError(t, x.Add(pod("tre", users("ernie,elmo"))))
	require.Equal(t, []string{"one", "tre"}, found(t, x, "user", "ernie"))
	require.Equal(t, []string{"one", "two"}, found(t, x, "user", "bert"))
	require.Empty(t, found(t, x, "user", "elmo1"))
	require.ElementsMatch(t, []string{"bert", "elmo", "ernie", "oscar"}, x.ListIndexFuncValues("user"))
	keys, err := x.IndexKeys("user", "bert")
	require.NoError(t, err)
	require.Equal(t, []string{"default/one", "default/two"}, keys)

	objects, err := x.Index("user", pod("stranger", users("elmo,oscar")))
	require.NoError(t, err)
	require.Equal(t, []string{"tre", "two"}, names(objects))

	require.NoError(t, x.Delete(pod("tre")))
	require.Equal(t, []string{"one"}, found(t, x, "user", "ernie"))
	require.NotContains(t, x.ListIndexFuncValues("user"), "elmo", "a value without objects is gone")
	require.NoError(t, x.Update(pod("two", users("oscar"))))
	require.Equal(t, []string{"one"}, found(t, x, "user", "bert"))
	require.NoError(t, x.Update(pod("two")))
	require.Empty(t, found(t, x, "user", "oscar"))
}

func TestAnUnknownIndexIsAnErrorThatListsTheIndices(t *testing.T) {
	x := New(nil, BuiltIn(), Options{})
	_, err := x.ByIndex("zone", "a")
	require.EqualError(t, err, "index with name zone does not exist: the indices are label, namespace, node, owner, uid")
	_, err = x.IndexKeys("zone", "a")
	require.Error(t, err)
	_, err = x.Index("zone", pod("a"))
	require.Error(t, err)
	require.Empty(t, x.ListIndexFuncValues("zone"))
}

func TestAnIndexFunctionThatFailsOrPanicsChangesNothing(t *testing.T) {
	x := New(nil, cache.Indexers{"user": byUser, NamespaceIndex: NamespaceIndexFunc}, Options{})
	require.NoError(t, x.Add(pod("a", users("ann"), version("3"))))
	for _, bad := range []string{"fail", "panic"} {
		var indexError *IndexError
		for _, err := range []error{
			x.Update(pod("a", users(bad), version("4"))), x.Add(pod("b", users(bad))),
			x.Replace([]any{pod("c"), pod("a", users(bad))}, "9"),
		} {
			require.ErrorAs(t, err, &indexError)
			require.Equal(t, "user", indexError.Index)
		}
		_, err := x.Index("user", pod("a", users(bad)))
		require.ErrorAs(t, err, &indexError)
		require.Empty(t, indexError.Key)
	}
	require.Equal(t, []string{"a"}, names(x.List()))
	require.Equal(t, []string{"a"}, found(t, x, "user", "ann"))
	require.Equal(t, []string{"a"}, found(t, x, NamespaceIndex, "default"))
	require.Equal(t, "3", x.LastStoreSyncResourceVersion())
}

func TestIndicesCanBeAddedToAStoreWithObjects(t *testing.T) {
	x := New(nil, nil, Options{})
	require.NoError(t, x.Add(pod("a", users("ann"))))
	require.NoError(t, x.AddIndexers(cache.Indexers{"user": byUser}))
	require.Equal(t, []string{"a"}, found(t, x, "user", "ann"))
	require.NoError(t, x.Add(pod("b", users("ann"))))
	require.Equal(t, []string{"a", "b"}, found(t, x, "user", "ann"))
	require.ErrorContains(t, x.AddIndexers(cache.Indexers{"user": byUser, "other": byUser}), "user")
	require.Len(t, x.GetIndexers(), 1)

	bad := New(nil, nil, Options{})
	require.NoError(t, bad.Add(pod("a", users("panic"))))
	var indexError *IndexError
	require.ErrorAs(t, bad.AddIndexers(cache.Indexers{"user": byUser}), &indexError)
	require.Empty(t, bad.GetIndexers())
}

func TestALazyIndexIsBuiltAtItsFirstUseAndReturnsItsError(t *testing.T) {
	calls := 0
	counted := func(obj any) ([]string, error) { calls++; return byUser(obj) }
	x := New(nil, cache.Indexers{"user": counted}, Options{Lazy: true})
	require.NoError(t, x.Add(pod("a", users("ann"))))
	require.NoError(t, x.Add(pod("b", users("fail"))))
	require.Zero(t, calls)

	_, err := x.ByIndex("user", "ann")
	require.ErrorIs(t, err, errBadUser)
	require.ErrorContains(t, err, `index "user" of object "default/b"`)
	_, err = x.IndexKeys("user", "ann")
	require.ErrorIs(t, err, errBadUser)
	_, err = x.Index("user", pod("x"))
	require.ErrorIs(t, err, errBadUser)
	_, err = x.IndexValues("user")
	require.ErrorIs(t, err, errBadUser)
	require.Empty(t, x.ListIndexFuncValues("user"))

	require.NoError(t, x.Update(pod("b", users("bob"))))
	require.Equal(t, []string{"ann", "bob"}, slices.Sorted(slices.Values(x.ListIndexFuncValues("user"))))
	require.ErrorIs(t, x.Update(pod("b", users("fail"))), errBadUser, "once built it is maintained")
	require.NoError(t, x.AddIndexers(cache.Indexers{"more": counted}))
	require.Equal(t, []string{"b"}, found(t, x, "more", "bob"))
}

func TestTheBuiltInIndicesSeeTheSameInTextsAndObjects(t *testing.T) {
	p := pod("a", func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "web", "tier": ""}
		p.OwnerReferences = []metav1.OwnerReference{{UID: "o1"}, {UID: "o2"}}
		p.Spec.NodeName = "node-1"
	})
	want := map[string][]string{
		NamespaceIndex: {"default"}, LabelIndex: {"app", "app=web", "tier", "tier="}, OwnerIndex: {"o1", "o2"}, NodeIndex: {"node-1"}, UIDIndex: {"uid-a"},
	}
	doc := docOfPod(t, p)
	u, err := Decode(doc)
	require.NoError(t, err)
	for _, object := range []any{p, u, doc, []byte(doc)} {
		for name, of := range BuiltIn() {
			values, err := of(object)
			require.NoError(t, err)
			require.ElementsMatch(t, want[name], values, "%s of a %T", name, object)
		}
	}
	x := New(nil, BuiltIn(), Options{})
	require.NoError(t, x.Add(doc))
	for name := range BuiltIn() {
		require.NotNil(t, x.store.indices[name].text, "%s is computed without decoding", name)
		require.ElementsMatch(t, want[name], x.ListIndexFuncValues(name))
		_, err := BuiltIn()[name](100)
		require.Error(t, err)
	}
	require.ErrorContains(t, x.Add([]byte(`{"metadata":{"name":"x","labels":{"a":1}}}`)), "/metadata/labels")
	require.Nil(t, builtIn(byUser))
}

func TestReadersAndIndexFunctionsGetTheObjectsOfOptionsDecode(t *testing.T) {
	decode := func(doc patch.Doc) (any, error) {
		u, err := Decode(doc)
		if err != nil || u.GetName() == "bad" {
			return nil, errors.Join(err, errBadUser)
		}
		return pod(u.GetName(), users(u.GetAnnotations()["users"])), nil
	}
	typed := func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Annotations["users"]}, nil }
	x := New(nil, cache.Indexers{"user": typed}, Options{Decode: decode})
	require.NoError(t, x.Add(docOfPod(t, pod("a", users("ann")))))
	require.ErrorIs(t, x.Add(pod("bad")), errBadUser)
	objects, err := x.Index("user", docOfPod(t, pod("other", users("ann"))))
	require.NoError(t, err)
	require.IsType(t, &corev1.Pod{}, objects[0])
	require.Len(t, x.List(), 1)
}

func TestDecodeRejectsTextThatIsNoObject(t *testing.T) {
	for _, text := range []string{"null", "[]", "1", `"{}"`, "", "{", `{"a":1e400`} {
		_, err := Decode(patch.Doc(text))
		require.Error(t, err, text)
	}
}

func TestObjectsStayValidAfterLaterReads(t *testing.T) {
	x := New(nil, nil, Options{})
	pods := realPods(t, 50)
	for _, doc := range pods {
		require.NoError(t, x.Add(doc))
	}
	objects := make(map[string]any)
	for _, doc := range pods {
		object, _, err := x.GetByKey(keyOf(doc))
		require.NoError(t, err)
		objects[keyOf(doc)] = object
	}
	for _, doc := range pods {
		want := new(unstructured.Unstructured)
		require.NoError(t, want.UnmarshalJSON(doc))
		require.Equal(t, want, objects[keyOf(doc)])
	}
}

func TestTextsAreReturnedUnchanged(t *testing.T) {
	x := New(nil, nil, Options{})
	pods := realPods(t, 200)
	want := make(map[string]patch.Doc)
	for _, doc := range pods {
		require.NoError(t, x.Add(doc))
		want[keyOf(doc)] = doc
	}
	require.NotNil(t, x.stager.packer.dict.Load(), "the dictionary is in use")
	last := ""
	for key, doc := range x.All() {
		require.Less(t, last, key)
		require.Equal(t, want[key], doc)
		last = key
	}
	require.Equal(t, len(want), x.Len())
	doc, exists := x.Doc(last)
	require.True(t, exists)
	require.Equal(t, want[last], doc)
	_, exists = x.Doc("nobody")
	require.False(t, exists)
}

func TestATextCanBeAddedUnderItsName(t *testing.T) {
	doc := docOfPod(t, pod("a", users("ann"), version("5")))
	for _, key := range []cache.KeyFunc{nil, cache.MetaNamespaceKeyFunc} {
		x := New(key, cache.Indexers{"user": byUser}, Options{})
		require.NoError(t, x.AddDoc("default", "a", "5", doc))
		require.Equal(t, []string{"default/a"}, x.ListKeys())
		require.Equal(t, []string{"a"}, found(t, x, "user", "ann"))
		require.Equal(t, "5", x.LastStoreSyncResourceVersion())
		require.ErrorIs(t, x.AddDoc("default", "a", "6", docOfPod(t, pod("a", users("fail")))), errBadUser)
	}
	s := NewSnapshot(nil, Options{})
	require.NoError(t, s.AddDoc(podResource, "default", "a", "5", doc))
	require.Equal(t, 1, s.Len())
}

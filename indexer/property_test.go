package indexer

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
)

// drawObject makes an object of few names and values, so that objects share them.
func drawObject(rt *rapid.T) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	u.SetName(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "name"))
	u.SetNamespace(rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "namespace"))
	u.SetResourceVersion(rapid.SampledFrom([]string{"1", "2", "33"}).Draw(rt, "rv"))
	if labels := rapid.MapOfN(rapid.SampledFrom([]string{"app", "tier"}), rapid.SampledFrom([]string{"", "web"}), 0, 2).Draw(rt, "labels"); len(labels) > 0 {
		u.SetLabels(labels)
	}
	u.SetAnnotations(map[string]string{"users": rapid.SampledFrom([]string{"", "ann", "ann,bob", "bob,bob"}).Draw(rt, "users")})
	if owner := rapid.SampledFrom([]string{"", "o1", "o2"}).Draw(rt, "owner"); owner != "" {
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "X", Name: "x", UID: "o1"}, {APIVersion: "v1", Kind: "X", Name: "x", UID: "o2"}}[:len(owner)-1])
	}
	if node := rapid.SampledFrom([]string{"", "n1"}).Draw(rt, "node"); node != "" {
		u.Object["spec"] = map[string]any{"nodeName": node}
	}
	return u
}

func texts(t require.TestingT, objects []any) []string {
	found := make([]string, len(objects))
	for i, object := range objects {
		text, err := json.Marshal(object)
		require.NoError(t, err)
		found[i] = string(text)
	}
	slices.Sort(found)
	return found
}

func sameAnswers(t require.TestingT, ours *Indexer, theirs cache.Indexer, ask *unstructured.Unstructured) {
	require.Equal(t, texts(t, theirs.List()), texts(t, ours.List()))
	require.ElementsMatch(t, theirs.ListKeys(), ours.ListKeys())
	require.Equal(t, theirs.LastStoreSyncResourceVersion(), ours.LastStoreSyncResourceVersion())
	for name := range theirs.GetIndexers() {
		values := theirs.ListIndexFuncValues(name)
		require.ElementsMatch(t, values, ours.ListIndexFuncValues(name), name)
		for _, value := range append(values, "nothing") {
			want, err := theirs.ByIndex(name, value)
			require.NoError(t, err)
			got, err := ours.ByIndex(name, value)
			require.NoError(t, err)
			require.Equal(t, texts(t, want), texts(t, got), "%s=%s", name, value)
			wantKeys, _ := theirs.IndexKeys(name, value)
			gotKeys, _ := ours.IndexKeys(name, value)
			require.Equal(t, wantKeys, gotKeys)
		}
		want, err := theirs.Index(name, ask)
		require.NoError(t, err)
		got, err := ours.Index(name, ask)
		require.NoError(t, err)
		require.Equal(t, texts(t, want), texts(t, got))
	}
}

func TestAnIndexerReturnsTheSameAsClientGos(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		indexers := func() cache.Indexers {
			all := BuiltIn()
			all["user"] = byUser
			return all
		}
		ours := New(nil, indexers(), Options{Lazy: rapid.Bool().Draw(rt, "lazy")})
		theirs := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexers())
		fit := func(u *unstructured.Unstructured) any { // any of the accepted types
			if rapid.Bool().Draw(rt, "as text") {
				doc, err := docOf(u)
				require.NoError(rt, err)
				return doc
			}
			return u
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { sameAnswers(rt, ours, theirs, drawObject(rt)) },
			"add": func(*rapid.T) {
				u := drawObject(rt)
				require.NoError(rt, theirs.Add(u))
				require.NoError(rt, ours.Add(fit(u)))
			},
			"update": func(*rapid.T) {
				u := drawObject(rt)
				require.NoError(rt, theirs.Update(u))
				require.NoError(rt, ours.Update(fit(u)))
			},
			"delete": func(*rapid.T) {
				u := drawObject(rt)
				require.NoError(rt, theirs.Delete(u))
				require.NoError(rt, ours.Delete(fit(u)))
			},
			"tombstone": func(*rapid.T) {
				key, _ := cache.MetaNamespaceKeyFunc(drawObject(rt))
				require.NoError(rt, theirs.Delete(cache.DeletedFinalStateUnknown{Key: key}))
				require.NoError(rt, ours.Delete(cache.DeletedFinalStateUnknown{Key: key}))
			},
			"replace": func(*rapid.T) {
				var list, mine []any
				for range rapid.IntRange(0, 3).Draw(rt, "n") {
					u := drawObject(rt)
					list, mine = append(list, u), append(mine, fit(u))
				}
				require.NoError(rt, theirs.Replace(list, "100"))
				require.NoError(rt, ours.Replace(mine, "100"))
			},
			"transaction": func(*rapid.T) {
				var txns, mine []cache.Transaction
				for range rapid.IntRange(1, 3).Draw(rt, "n") {
					u := drawObject(rt)
					kind := rapid.SampledFrom([]cache.TransactionType{cache.TransactionTypeAdd, cache.TransactionTypeUpdate, cache.TransactionTypeDelete}).Draw(rt, "type")
					txns, mine = append(txns, cache.Transaction{Object: u, Type: kind}), append(mine, cache.Transaction{Object: fit(u), Type: kind})
				}
				require.Nil(rt, theirs.(cache.TransactionStore).Transaction(txns...))
				require.Nil(rt, ours.Transaction(mine...))
			},
			"bookmark": func(*rapid.T) {
				theirs.Bookmark("55")
				ours.Bookmark("55")
			},
			"get": func(*rapid.T) {
				u := drawObject(rt)
				want, exists, err := theirs.Get(u)
				require.NoError(rt, err)
				got, ok, err := ours.Get(fit(u))
				require.NoError(rt, err)
				require.Equal(rt, exists, ok)
				if exists {
					require.Equal(rt, want, got)
				}
			},
			"index": func(*rapid.T) {
				name := rapid.SampledFrom([]string{"again", "more"}).Draw(rt, "index")
				err := theirs.AddIndexers(cache.Indexers{name: byUser})
				require.Equal(rt, err == nil, ours.AddIndexers(cache.Indexers{name: byUser}) == nil)
			},
		})
	})
}

// This is the view of readers while others write. Each index agrees with the objects found through it, and a
// transaction is seen whole.
func TestConcurrentReadersSeeWholeTransactions(t *testing.T) {
	x := New(nil, cache.Indexers{NamespaceIndex: NamespaceIndexFunc, "user": byUser, LabelIndex: LabelIndexFunc}, Options{Lazy: true})
	const rounds = 300
	var writers, readers errgroup.Group
	for _, name := range []string{"a", "b", "c"} {
		writers.Go(func() error {
			for i := range rounds {
				// ann has both or none.
				other := []string{"ann", "bob"}[i%2]
				if err := x.Transaction(
					cache.Transaction{Type: cache.TransactionTypeUpdate, Object: pod(name+"1", users(other))},
					cache.Transaction{Type: cache.TransactionTypeUpdate, Object: pod(name+"2", users(other))},
				); err != nil {
					return err
				}
			}
			return nil
		})
	}
	writers.Go(func() error {
		for i := range rounds {
			if err := x.AddIndexers(cache.Indexers{string(rune('A' + i)): byUser}); err != nil {
				return err
			}
			x.Bookmark("7")
			if i == 20 {
				return nil
			}
		}
		return nil
	})
	for range 2 {
		readers.Go(func() error {
			for range rounds {
				objects, err := x.ByIndex("user", "ann")
				if err != nil {
					return err
				}
				perWriter := make(map[byte]int)
				for _, object := range objects {
					u := object.(*unstructured.Unstructured)
					perWriter[u.GetName()[0]]++
					if u.GetAnnotations()["users"] != "ann" {
						t.Errorf("%s was found under a user that it does not have", u.GetName())
					}
					u.SetAnnotations(nil) // It is ours.
				}
				for writer, n := range perWriter {
					if n != 2 {
						t.Errorf("half of a transaction of %c was seen", writer)
					}
				}
				x.List()
				x.ListIndexFuncValues(LabelIndex)
			}
			return nil
		})
	}
	require.NoError(t, writers.Wait())
	require.NoError(t, readers.Wait())
	require.Equal(t, 6, x.Len())
}

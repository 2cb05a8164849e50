package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientfeatures "k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/consistencydetector"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// A factory makes informers of a kind.
type factory func(*testing.T, *rest.Config, kind) cache.SharedIndexInformer

var factories = map[string]factory{
	"typed": func(t *testing.T, config *rest.Config, k kind) cache.SharedIndexInformer {
		t.Helper()
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		informer, err := informers.NewSharedInformerFactory(client, 0).ForResource(k.GroupVersionResource)
		require.NoError(t, err)
		return informer.Informer()
	},
	"dynamic": func(t *testing.T, config *rest.Config, k kind) cache.SharedIndexInformer {
		t.Helper()
		client, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(k.GroupVersionResource).Informer()
	},
	"metadata": func(t *testing.T, config *rest.Config, k kind) cache.SharedIndexInformer {
		t.Helper()
		client, err := metadata.NewForConfig(config)
		require.NoError(t, err)
		return metadatainformer.NewSharedInformerFactory(client, 0).ForResource(k.GroupVersionResource).Informer()
	},
}

// sameCaches runs unmodified informers against both servers. client-go's own detector compares what a streamed list gave with a list of the same version.
func sameCaches(t *testing.T, s *system) {
	for name, factory := range factories {
		for _, streamed := range []bool{true, false} {
			way := name + ", lists"
			if streamed {
				way = name + ", streamed lists"
			}
			t.Run(way, func(t *testing.T) {
				// It takes the kinds of items for data, which only lists in JSON have.
				t.Cleanup(consistencydetector.SetDataConsistencyDetectionForWatchListEnabledForTest(name != "metadata"))
				featurestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, streamed)
				for _, k := range s.first(t, cmp.Or(*resources, len(usual))) { // Each of them has objects, and can be watched.
					if name == "typed" && k.Group == "example.com" {
						continue // There are no types for it.
					}
					requireSameCaches(t, s, factory, k)
				}
			})
		}
	}
}

func requireSameCaches(t *testing.T, s *system, made factory, k kind) {
	t.Helper()
	theirs, ours := synced(t, made(t, s.theirs.config, k)), synced(t, made(t, s.ours.config, k))
	require.NotEmpty(t, theirs, k.String())
	for _, objects := range []map[string]any{theirs, ours} {
		for _, object := range objects {
			delete(object.(map[string]any), "kind") // There if the client read JSON, and not if it read protobuf.
			delete(object.(map[string]any), "apiVersion")
		}
	}
	if k.Resource == "secrets" {
		mendData(theirs, ours)
	}
	require.Empty(t, report(differences("", theirs, ours)), k.String())
}

// synced runs an informer until it has its objects, and gives them by key.
func synced(t *testing.T, informer cache.SharedIndexInformer) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recordertest.Patience)
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	ok := cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	cancel()
	<-done
	require.True(t, ok, "the informer has its objects")
	objects := map[string]any{}
	for _, key := range informer.GetStore().ListKeys() {
		object, _, err := informer.GetStore().GetByKey(key)
		require.NoError(t, err)
		text, err := json.Marshal(object)
		require.NoError(t, err)
		objects[key], err = decode(text)
		require.NoError(t, err)
	}
	return objects
}

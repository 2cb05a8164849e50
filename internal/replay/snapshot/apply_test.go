package snapshot

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestASnapshotForApplySkipsHashedAnnotations(t *testing.T) {
	object := func(annotations map[string]any) map[string]any {
		return map[string]any{"kind": "Thing", "metadata": map[string]any{"name": "a", "annotations": annotations}}
	}
	o := &unstructured.Unstructured{Object: object(map[string]any{"kapp.k14s.io/original": "hmac-sha256:00", "meta.helm.sh/release-name": "web"})}
	removeServerFields(o)
	require.Equal(t, object(map[string]any{"meta.helm.sh/release-name": "web"}), o.Object)
	o = &unstructured.Unstructured{Object: object(map[string]any{"kapp.k14s.io/original": "hmac-sha256:00"})}
	removeServerFields(o)
	require.Equal(t, map[string]any{"kind": "Thing", "metadata": map[string]any{"name": "a"}}, o.Object)
}

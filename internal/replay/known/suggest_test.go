package known_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/replay/known"
)

func TestASlipIsRecognised(t *testing.T) {
	words := []string{"shop", "billing", "kube-system", "kubectl", "kubelet"}
	for word, want := range map[string]string{
		"shpo": "shop", "shp": "shop", "shopp": "shop", "biling": "billing", "billnig": "billing", "kube-systm": "kube-system", "kubectk": "kubectl",
		"kubelt": "kubelet", "whoo": "", "": "", "x": "", "shop": "shop",
	} {
		require.Equal(t, want, known.Suggest(word, words), "%q", word)
	}
	require.Empty(t, known.Suggest("shop", nil))
}

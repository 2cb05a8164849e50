package mistyped_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/mistyped"
)

func TestSuggestFindsASlip(t *testing.T) {
	words := []string{"shop", "billing", "kube-system", "kubectl", "kubelet"}
	for word, want := range map[string]string{
		"shpo": "shop", "shp": "shop", "shopp": "shop", "biling": "billing", "billnig": "billing", "kube-systm": "kube-system", "kubectk": "kubectl",
		"kubelt": "kubelet", "whoo": "", "": "", "x": "", "shop": "shop",
	} {
		require.Equal(t, want, mistyped.Suggest(word, words), "%q", word)
	}
	require.Empty(t, mistyped.Suggest("shop", nil))
}

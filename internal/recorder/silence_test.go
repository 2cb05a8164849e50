package recorder

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/reflector"
)

func TestAStreamThatWasToldBetweenTwoRunsLeavesWithTheNext(t *testing.T) {
	all := newRevisions()
	etcd := &archive{now: 100}
	c, _ := followed(all, "widgets", etcd, 50)
	followed(all, "configmaps", etcd, 60)
	require.NoError(t, all.probe(t.Context()))
	c.follow(nil)
	etcd.now = 55
	require.NoError(t, all.probe(t.Context()))
	require.True(t, c.left())
	etcd.now = 100 // and nothing shows any more
	c.follow(func(string) {})
	proof, err := c.Reversed(t.Context(), "50")
	require.NoError(t, err)
	require.Contains(t, proof, "configmaps was recorded up to resource version 60")

	c.listing(reflector.CauseHistoryReversed)
	c.listed()
	proof, err = c.Reversed(t.Context(), "100")
	require.NoError(t, err)
	require.Empty(t, proof)
}

package rollback

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/kube"
)

// In the first seconds, it is not known yet which streams share an etcd.
func TestEachStreamFindsTheForkThoughTheSharedEtcdIsNotKnownYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 80, versions: []*kube.Object{servedAs("a", "1", 40), servedAs("c", "4", 75)}}
		finder, _ := followed(all, "secrets", etcd, 60, servedAs("lost", "3", 58))
		other, notified := followed(all, "configmaps", etcd, 60, servedAs("a", "1", 40), servedAs("gone", "2", 56), servedAs("c", "4", 75))
		for _, c := range []*Stream{finder, other} {
			c.Watching("10")
		}
		time.Sleep(2 * acceptedAfter)
		require.NoError(t, finder.rollBack(t.Context(), evidence{"proof", servedAsVersion("lost", "3", 58), 58, true, time.Time{}, 0}))
		require.Len(t, *notified, 1)
		for _, c := range []*Stream{finder, other} {
			p, err := c.trust.cacheCheck.fork.find(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 40, p.common.revision)
		}
	})
}

package rollback

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/kube"
)

// A list has ended the first rollback. The versions after it are sampled in the same way.
func TestTheVersionBeforeAPauseIsCheckedAfterARollbackToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &archive{now: 20_000}
		all, c, notified := alone(etcd)
		c.Saw(servedAs("lost", "1", 30_000), false)
		finds(t, all.lookBack, notified, 1)
		c.listsAfterRollback()
		for i := range 5000 {
			etcd.serves(c, servedAs("x"+strconv.Itoa(i), "1", 101+i), i < 4998)
		}
		time.Sleep(servingPause)
		for i := range 3000 {
			etcd.serves(c, servedAs("z"+strconv.Itoa(i), "1", 6001+i), true)
		}
		finds(t, all.lookBack, notified, 2)
	})
}

// For minutes the server answers no lists, while watches go on. Then etcd is put back.
func TestTheVersionBeforeAPauseIsNotThinnedOutAmongOthers(t *testing.T) {
	for more := range 16 {
		synctest.Test(t, func(t *testing.T) {
			etcd := &archive{now: 90_000, fails: errDown}
			all, c, notified := alone(etcd)
			n := 100
			serve := func(name string, kept bool) {
				etcd.serves(c, servedAs(name+strconv.Itoa(n), "1", n), kept)
				n++
				time.Sleep(50 * time.Millisecond)
			}
			for i := range 4000 { // 200 s
				serve("x", true)
				if i%200 == 199 {
					require.Error(t, all.lookBack(t.Context()))
				}
			}
			for range more { // so that the pause comes at each place between two kept samples
				serve("x", true)
			}
			require.Error(t, all.lookBack(t.Context()))
			for range 50 {
				serve("x", true)
			}
			serve("lost", false)
			time.Sleep(2 * time.Second) // etcd is put back
			for range 200 {
				serve("new", true)
			}
			etcd.fails = nil
			finds(t, all.lookBack, notified, 1)
			require.Contains(t, (*notified)[0], "ns/lost")
		})
	}
}

// refusesName refuses one name.
type refusesName struct {
	*archive
	name string
	err  error
}

func (a *refusesName) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if strings.Contains(options.FieldSelector, a.name) && options.ResourceVersion != "" {
		return nil, a.err
	}
	return a.archive.ListWithContext(ctx, options)
}

// A server never says anything about one version. The other samples of the stream are checked all the same, and
// that version is dropped at last.
func TestARefusedVersionKeepsNoOtherFromBeingChecked(t *testing.T) {
	for name, err := range map[string]error{
		"not found: another scope":  apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, ""),
		"500: it cannot be decoded": &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := New(Options{})
				etcd := &archive{now: 100}
				c, notified := followed(all, "widgets", etcd, 50)
				c.ListWith(func(string) cache.ListerWithContext { return &refusesName{etcd, "cursed", err} })
				c.Saw(servedAs("cursed", "1", 52), false)
				time.Sleep(time.Millisecond)
				c.Saw(servedAs("lost", "2", 53), false)
				time.Sleep(time.Millisecond)
				etcd.serves(c, servedAs("kept", "3", 54), true)
				require.Error(t, all.lookBack(t.Context()))
				require.Len(t, *notified, 1)

				c.listsAfterRollback()
				c.Saw(servedAs("cursed", "1", 101), false)
				etcd.now = 110
				etcd.serves(c, servedAs("kept", "3", 102), true)
				for range maxRefusals {
					require.Error(t, all.lookBack(t.Context()))
				}
				require.NoError(t, all.lookBack(t.Context()))
			})
		})
	}
}

// When etcd stops, a stream catches up, and is served versions that both histories have.
func TestTheNewestVersionBeforeAPauseIsCheckedThoughAnOlderCameLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 20_000}
		idle, _ := followed(all, "widgets", etcd, 50)
		busy, notified := followed(all, "secrets", etcd, 50)
		join(busy, idle)
		serve := func(by *Stream, name string, rv int, kept bool) {
			etcd.serves(by, servedAs(name+strconv.Itoa(rv), "1", rv), kept)
			time.Sleep(time.Millisecond)
		}
		for i := range 5000 {
			serve(busy, "x", 6000+i, i < 4998)
		}
		serve(idle, "y", 200, true)
		time.Sleep(servingPause)
		for i := range 3000 {
			serve(busy, "z", 11_100+i, true)
		}
		finds(t, all.lookBack, notified, 1)
	})
}

// The new history passes the served version by writes that are not recorded.
func TestTheNewestVersionIsCheckedAsLongAsNothingFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 70}
		c, notified := followed(all, "configmaps", etcd, 60)
		etcd.serves(c, servedAs("lost", "1", 70), true)
		finds(t, all.lookBack, notified, 0)
		time.Sleep(probeEvery)
		etcd.now, etcd.versions = 100, nil
		finds(t, all.lookBack, notified, 1)
	})
}

// Nothing was served since the list. The new history has passed the old one before the next probe.
func TestTheNewestVersionOfAListShowsARollbackOfAQuietEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 50}
		c, notified := followed(all, "routes", etcd, 10)
		kept := servedAs("x", "1", 40)
		etcd.versions = append(etcd.versions, kept)
		c.Listing("first_list")
		c.Shown([]any{kept})
		c.Listed("50")
		c.Reached("50")
		finds(t, all.Probe, notified, 0)
		time.Sleep(2 * servingPause)
		etcd.now, etcd.versions = 60, []*kube.Object{servedAs("x", "2", 35)}
		etcd.serves(c, servedAs("x", "2", 55), true)
		c.Reached("55")
		finds(t, all.Probe, notified, 1)
	})
}

// After the pause, another resource is listed before anything is served.
func TestAListAfterAPauseHidesNoVersionFromBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 50}
		c, notified := followed(all, "configmaps", etcd, 10)
		other, _ := followed(all, "routes", etcd, 10)
		join(c, other)
		etcd.serves(c, servedAs("lost", "1", 40), false)
		c.samples.fresh = sampleSet{} // It was not among the kept samples.
		time.Sleep(2 * servingPause)
		etcd.now, etcd.versions = 70, []*kube.Object{servedAs("x", "2", 35)}
		other.Listing("relist")
		other.Shown([]any{servedAs("x", "2", 35)})
		other.Listed("60")
		etcd.serves(c, servedAs("new", "3", 61), true)
		finds(t, all.lookBack, notified, 1)
		require.Contains(t, (*notified)[0], "ns/lost")
	})
}

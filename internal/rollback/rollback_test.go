package rollback

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/canonical"
	"github.com/kuberewind/kuberewind/kube"
)

// archive is an etcd that holds the versions of a few objects. A real etcd does not give a revision twice when a
// test needs that.
type archive struct {
	now, compacted int
	versions       []*kube.Object // in order; a version without a UID ends its object
	cached         []*kube.Object // what an API server with an old cache lists
	asked          atomic.Int64
	fails          error  // instead of any answer
	meanwhile      func() // called once, before the next answer
}

func servedAs(name, uid string, rv int) *kube.Object {
	return &kube.Object{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: strconv.Itoa(rv)}}
}

// titled adds an annotation and a time of writing to a version.
func titled(o *kube.Object, title, timeOfWrite string) *kube.Object {
	o.JSON = []byte(fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"title":%q},"managedFields":[{"time":%q}]}}`, o.Name, title, timeOfWrite))
	return o
}

func (a *archive) lister(string) cache.ListerWithContext { return a }

func (a *archive) List(options metav1.ListOptions) (runtime.Object, error) {
	return a.ListWithContext(context.Background(), options)
}

func (a *archive) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	a.asked.Add(1)
	if happens := a.meanwhile; happens != nil {
		a.meanwhile = nil
		happens()
	}
	if a.fails != nil {
		return nil, a.fails
	}
	if options.ResourceVersion == "" {
		return &kube.List{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(a.now)}, Items: a.cached}, nil
	}
	at, err := strconv.Atoi(options.ResourceVersion)
	switch {
	case err != nil:
		return nil, err
	case at > a.now:
		gone := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", at, a.now), 0)
		gone.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, gone
	case at < a.compacted:
		return nil, apierrors.NewResourceExpired("compacted")
	}
	list := &kube.List{ListMeta: metav1.ListMeta{ResourceVersion: options.ResourceVersion}}
	selector, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	name, _ := selector.RequiresExactMatch(metav1.ObjectNameField)
	if o := a.newest(name, at); o != nil {
		list.Items = append(list.Items, o)
	}
	return list, nil
}

func (a *archive) newest(name string, at int) (found *kube.Object) {
	for _, o := range a.versions {
		if rv, _ := strconv.Atoi(o.ResourceVersion); o.Name == name && rv <= at {
			found = o
			if o.UID == "" {
				found = nil
			}
		}
	}
	return found
}

func (a *archive) Get(_ context.Context, _, name string) (*kube.Object, error) {
	if o := a.newest(name, a.now); o != nil && a.fails == nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, name)
}

// serves serves a version to a stream. kept says whether etcd keeps the version.
func (a *archive) serves(c *Stream, o *kube.Object, kept bool) {
	c.Saw(o, false)
	if kept {
		a.versions = append(a.versions, o)
	}
}

// followed adds a stream that is followed, has reached a position, and was served some versions. notified gets the
// proofs of its rollbacks.
func followed(all *Streams, name string, etcd *archive, position int, served ...*kube.Object) (c *Stream, notified *[]string) {
	c, notified = all.Add(Spec{Name: name}), &[]string{}
	c.ListWith(etcd.lister)
	c.ask.canonical = canonical.Transformer(nil)
	for _, o := range served {
		c.Saw(o, false)
	}
	c.Reached(strconv.Itoa(position))
	c.Follow(func(proof string) { *notified = append(*notified, proof) })
	return c, notified
}

// alone returns the streams of an etcd that has one stream, at revision 50.
func alone(etcd *archive) (all *Streams, c *Stream, notified *[]string) {
	all = New(Options{})
	c, notified = followed(all, "configmaps", etcd, 50)
	return all, c, notified
}

// finds calls Probe or lookBack, and expects the proofs of so many rollbacks in all.
func finds(t *testing.T, check func(context.Context) error, notified *[]string, rollbacks int) {
	t.Helper()
	require.NoError(t, check(t.Context()))
	require.Len(t, *notified, rollbacks)
}

// checkList calls CheckList for a list.
func checkList(t *testing.T, c *Stream, resourceVersion string, items []any) error {
	t.Helper()
	_, err := c.CheckList(t.Context(), resourceVersion, items)
	return err
}

func TestTheProofsOfARollback(t *testing.T) {
	served := func() *kube.Object { return servedAs("x", "1", 50) }
	const early, late = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"
	for name, test := range map[string]struct {
		etcd   *archive
		served *kube.Object
		proof  string
	}{
		"the history stands":                    {&archive{now: 70, versions: []*kube.Object{served()}}, served(), ""},
		"etcd is behind":                        {&archive{now: 55, versions: []*kube.Object{served()}}, served(), "which etcd has not reached"},
		"etcd is behind, and nothing lives":     {&archive{now: 55}, nil, "which etcd has not reached"},
		"nothing lives":                         {&archive{now: 70}, nil, ""},
		"the object is not there":               {&archive{now: 70}, served(), "but etcd held another version, or none"},
		"the object is older":                   {&archive{now: 70, versions: []*kube.Object{servedAs("x", "1", 40)}}, served(), "but etcd held another version"},
		"another object has the name":           {&archive{now: 70, versions: []*kube.Object{servedAs("x", "2", 50)}}, served(), "but etcd held another version"},
		"the object was changed since":          {&archive{now: 70, versions: []*kube.Object{served(), servedAs("x", "1", 65)}}, served(), ""},
		"the same number at another time":       {&archive{now: 70, versions: []*kube.Object{titled(served(), "a", early)}}, titled(served(), "a", late), "but etcd held another version"},
		"the same number, redacted otherwise":   {&archive{now: 70, versions: []*kube.Object{titled(served(), "a", late)}}, titled(served(), "hash", late), ""},
		"the same number, its time redacted":    {&archive{now: 70, versions: []*kube.Object{titled(served(), "a", late)}}, titled(served(), "a", "hash"), ""},
		"the same number with the same content": {&archive{now: 70, versions: []*kube.Object{titled(served(), "a", late)}}, titled(served(), "a", late), ""},
		"compacted, and newer":                  {&archive{now: 90, compacted: 80, versions: []*kube.Object{servedAs("x", "1", 85)}}, served(), ""},
		"compacted, and gone":                   {&archive{now: 90, compacted: 80}, served(), ""},
		"compacted, and older":                  {&archive{now: 90, compacted: 80, versions: []*kube.Object{servedAs("x", "1", 40)}}, served(), "but etcd held another version"},
		"compacted, and as it was":              {&archive{now: 90, compacted: 80, versions: []*kube.Object{served()}}, served(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var objects []*kube.Object
				if test.served != nil {
					_, err := canonical.Transformer(nil)(test.served)
					if test.served.JSON != nil {
						require.NoError(t, err)
					}
					objects = append(objects, test.served)
				}
				c, notified := followed(New(Options{}), "things", test.etcd, 60, objects...)
				proof, err := c.CheckRollback(t.Context(), "60")
				require.NoError(t, err)
				if test.proof == "" {
					require.Empty(t, proof)
					require.Empty(t, *notified)
					return
				}
				require.Contains(t, proof, test.proof)
				require.Equal(t, []string{proof}, *notified)
				require.True(t, c.RolledBack())
			})
		})
	}
}

func TestARefusalIsNoProofAndABusyServerIsAskedAgain(t *testing.T) {
	etcd := &archive{now: 70}
	c, _ := followed(New(Options{}), "things", etcd, 60, servedAs("x", "1", 50))
	for _, err := range []error{
		apierrors.NewInternalError(fmt.Errorf("not implemented")), apierrors.NewBadRequest("field selectors"),
		apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", fmt.Errorf("no")), apierrors.NewResourceExpired("compacted"),
	} {
		etcd.fails = err
		proof, failed := c.CheckRollback(t.Context(), "60")
		require.NoError(t, failed)
		require.Empty(t, proof)
	}
	for _, err := range []error{apierrors.NewTooManyRequests("busy", 1), apierrors.NewServiceUnavailable("starting"), fmt.Errorf("connection refused")} {
		etcd.fails = err
		_, failed := c.CheckRollback(t.Context(), "60")
		require.ErrorIs(t, failed, err)
	}
}

func TestADeletionThatTheWatchIsAboutToDeliverIsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Two deletes of one lease: the watch has delivered the first.
		etcd := &archive{now: 70, versions: []*kube.Object{servedAs("x", "1", 50), servedAs("x", "", 60)}}
		c, notified := followed(New(Options{}), "events", etcd, 60, servedAs("x", "1", 50))
		time.AfterFunc(confirmAfter/2, func() { c.Saw(servedAs("x", "1", 60), true) })
		proof, err := c.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.Empty(t, proof)
		require.Empty(t, *notified)
	})
}

func TestARollbackConcernsTheStreamsOfOneEtcdOnly(t *testing.T) {
	all := New(Options{})
	rolledBack, apart := &archive{now: 55}, &archive{now: 900}
	_, first := followed(all, "a", rolledBack, 60)
	_, idle := followed(all, "b", rolledBack, 10)
	_, other := followed(all, "c", apart, 800)
	owner, _ := followed(all, "d", rolledBack, 5, servedAs("x", "1", 5))
	require.NoError(t, all.Probe(t.Context()))
	require.Len(t, *first, 1)
	require.Equal(t, *first, *idle)
	require.Empty(t, *other)
	for _, c := range all.streams {
		require.Empty(t, c.claims.newest, "the new history gives these revisions to other writes")
	}
	require.True(t, owner.RolledBack())

	require.NoError(t, all.Probe(t.Context()))
	require.Len(t, *first, 1, "a rollback is found once")

	owner.Listing(delta.CauseHistoryReversed)
	owner.Shown([]any{servedAs("x", "1", 5)})
	owner.Listed("")
	owner.Reached("55")
	require.False(t, owner.RolledBack())
	e := comparison{stream: owner}.expected()
	require.Equal(t, "x", e.lostVersion.name)
	require.EqualValues(t, 55, e.oldRevision, "and not the position before")
}

func TestClaimsInTheNewHistoryStayWhileOtherStreamsAreListed(t *testing.T) {
	all := New(Options{})
	etcd := &archive{now: 55}
	busy, _ := followed(all, "busy", etcd, 60)
	late, _ := followed(all, "late", etcd, 60)
	quiet, _ := followed(all, "quiet", etcd, 60)
	list := func(c *Stream) {
		c.Listing(delta.CauseHistoryReversed)
		c.Listed("55")
		c.Reached("55")
	}
	require.NoError(t, all.Probe(t.Context()))
	list(busy)
	list(quiet)
	etcd.now = 58
	etcd.serves(busy, servedAs("x", "2", 57), true)
	busy.Reached("58")
	late.Saw(servedAs("old", "1", 56), false) // Its watch of the old history has not ended yet.
	rest := func() []uint64 {
		found, err := quiet.Unaccounted(t.Context(), 55, 58, 10, true)
		require.NoError(t, err)
		return found
	}
	require.Equal(t, []uint64{56, 58}, rest(), "56 is of the old history")
	list(late)
	require.Equal(t, []uint64{56, 58}, rest())

	later, _ := followed(all, "later", etcd, 0)
	later.Recall(Recalled{Position: "60", Newest: []string{"56"}})
	require.Equal(t, []uint64{56, 58}, rest(), "it is not known yet whether 56 is of the old history")
	proof, err := later.CheckRollback(t.Context(), "60")
	require.NoError(t, err)
	require.NotEmpty(t, proof)
	require.Equal(t, []uint64{56, 58}, rest(), "a stream that is rolled back late takes no claims from others")
}

func TestOneStreamOfEachEtcdIsAsked(t *testing.T) {
	all := New(Options{})
	etcd := &archive{now: 100}
	for i := range 10 {
		followed(all, strconv.Itoa(i), etcd, 50+i)
	}
	require.NoError(t, all.Probe(t.Context()))
	etcd.asked.Store(0)
	require.NoError(t, all.Probe(t.Context()))
	require.EqualValues(t, 1, etcd.asked.Load())
}

func TestAListIsTrustedOnlyIfEtcdHoldsItsVersions(t *testing.T) {
	all := New(Options{})
	etcd := &archive{now: 55, versions: []*kube.Object{servedAs("kept", "1", 20)}}
	c, _ := followed(all, "things", etcd, 60, servedAs("lost", "2", 52))
	listed := func(rv string, items ...*kube.Object) error {
		var page []any
		for _, o := range items {
			page = append(page, o)
		}
		return checkList(t, c, rv, page)
	}
	require.NoError(t, listed("55", servedAs("kept", "1", 20)))
	require.NoError(t, listed("55"))
	require.ErrorContains(t, listed("60"), "has not reached the listed resource version")
	require.ErrorContains(t, listed("55", servedAs("kept", "1", 20), servedAs("lost", "2", 52)), "ns/lost")

	etcd.cached = []*kube.Object{servedAs("lost", "2", 52)}
	_, err := c.CheckRollback(t.Context(), "60")
	require.NoError(t, err)
	require.ErrorContains(t, listed("55", servedAs("kept", "1", 20)), "still serves things ns/lost", "one old cache makes the other suspect")
	etcd.cached = nil
	require.NoError(t, listed("55", servedAs("kept", "1", 20)))
}

func TestAStreamThatIsOpenedAfterARollbackIsRolledBackToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		// Put back to 40, etcd has reached 100. The old history deleted the service at 55, and now the service
		// lives. So the stream itself proves nothing.
		etcd := &archive{now: 100, versions: []*kube.Object{servedAs("kept", "1", 20), servedAs("gone", "2", 21)}}
		a, _ := followed(all, "configmaps", etcd, 60, servedAs("lost", "3", 50))
		proof, err := a.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.NotEmpty(t, proof)

		late, notified := followed(all, "services", etcd, 60, servedAs("kept", "1", 20))
		late.Recall(Recalled{Position: "60"})
		etcd.fails = errors.New("busy")
		_, err = late.CheckRollback(t.Context(), "60")
		require.Error(t, err, "the stream is not followed before that is known")
		require.Empty(t, *notified)
		etcd.fails = nil
		got, err := late.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.Equal(t, proof, got)
		require.Equal(t, []string{proof}, *notified)

		fresh, notified := followed(all, "widgets", etcd, 100)
		_, err = fresh.CheckRollback(t.Context(), "100")
		require.NoError(t, err)
		require.Empty(t, *notified, "the stream of a new resource has no old history")
	})
}

func TestAStreamIsRolledBackThoughTheFinderIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 100, versions: []*kube.Object{servedAs("kept", "1", 20)}}
		finder, _ := followed(all, "widgets", etcd, 60, servedAs("lost", "3", 50))
		neighbour, _ := followed(all, "configmaps", etcd, 60)
		join(finder, neighbour)
		proof, err := finder.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.NotEmpty(t, proof)

		finder.ListWith((&archive{fails: apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "")}).lister)
		finder.Follow(nil)
		late, notified := followed(all, "services", etcd, 60, servedAs("kept", "1", 20))
		late.Recall(Recalled{Position: "60"})
		got, err := late.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.Equal(t, proof, got)
		require.Equal(t, []string{proof}, *notified)
	})
}

// The name of a role may have any character of a path.
func TestEtcdIsAskedForAnyName(t *testing.T) {
	const name = `tenant:a,b=c\d`
	etcd := &archive{now: 9, versions: []*kube.Object{servedAs(name, "1", 5)}}
	c, _ := followed(New(Options{}), "clusterroles", etcd, 5)
	result, err := c.ask.look(t.Context(), servedAsVersion(name, "1", 5), 7)
	require.NoError(t, err)
	require.Equal(t, match, result)
}

// events calls each with the queued gaps of each rollback.
func (r *Streams) events(t *testing.T, each func(proof string, gaps map[string]deltafifo.Begin)) {
	t.Helper()
	r.queueGaps = func(_ context.Context, proof string, gaps []Gap) error {
		of := map[string]deltafifo.Begin{}
		for _, g := range gaps {
			of[g.Stream.ask.name] = g.Begin
		}
		each(proof, of)
		return nil
	}
}

func TestARollbackIsOneEventForAllStreamsThatMayBeInThatEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd, apart, down := &archive{now: 100}, &archive{now: 900}, &archive{now: 900, fails: errDown}
		c, notified := followed(all, "configmaps", etcd, 60)
		_, notifiedNeighbour := followed(all, "services", etcd, 50)
		gone, _ := followed(all, "widgets", etcd, 40)
		gone.Follow(nil)
		_, notifiedApart := followed(all, "events", apart, 800)
		_, notifiedDown := followed(all, "routes", down, 800)
		first, _ := followed(all, "first list", etcd, 0)
		first.Listing(delta.CauseFirstList)
		events := 0
		all.events(t, func(proof string, gaps map[string]deltafifo.Begin) {
			events++
			require.Equal(t, "proof", proof)
			require.Len(t, gaps, 3)
			require.Contains(t, gaps, "configmaps")
			require.Contains(t, gaps, "services")
			require.Contains(t, gaps, "routes", "it is not known to be in another etcd")
			require.Empty(t, *notified, "no stream is rolled back before the gaps of all are queued")
		})
		require.NoError(t, c.rollBack(t.Context(), evidence{proof: "proof", oldRevision: 52}))
		require.NoError(t, c.rollBack(t.Context(), evidence{proof: "again", oldRevision: 52}))
		require.Equal(t, 1, events)
		for _, by := range []*[]string{notified, notifiedNeighbour, notifiedDown} {
			require.Equal(t, []string{"proof"}, *by)
		}
		require.Empty(t, *notifiedApart)
		require.True(t, gone.RolledBack(), "it may come back")
		require.True(t, first.RolledBack(), "its list may be of the old history")
	})
}

func TestAGapBeginsAtTheNewestSettledVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, began := New(Options{}), time.Now()
		etcd := &archive{now: 100}
		c, _ := followed(all, "configmaps", etcd, 0)
		idle, _ := followed(all, "services", etcd, 0)
		join(c, idle)
		c.Recall(Recalled{Position: "50"})
		idle.Recall(Recalled{Position: "40"})
		unreachable, _ := followed(all, "routes", &archive{fails: errDown}, 0)
		unreachable.Recall(Recalled{Position: "800"})
		until := func() (found map[string]deltafifo.Begin) {
			c.all.mu.Lock()
			defer c.all.mu.Unlock()
			e := evidence{servedAt: time.Now()}
			last := c.progress.completeLocked(c.etcd, &e, nil).Time
			return map[string]deltafifo.Begin{"own": c.progress.completeLocked(c.etcd, &e, nil), "neighbour": idle.progress.completeLocked(idle.etcd, &e, nil), "elsewhere": unreachable.progress.completeLocked(unreachable.etcd, &e, &last)}
		}
		require.Equal(t, deltafifo.Begin{ResourceVersion: "50", Time: began}, until()["own"], "where the process began")
		require.Equal(t, deltafifo.Begin{ResourceVersion: "40", Time: began}, until()["neighbour"])
		var served []time.Time
		for i := range 3 {
			served = append(served, time.Now())
			etcd.serves(c, servedAs("kept", "1", 60+i), true)
			require.NoError(t, all.lookBack(t.Context()))
			time.Sleep(probeEvery)
		}
		require.Equal(t, deltafifo.Begin{ResourceVersion: "61", Time: served[1]}, until()["own"], "a cache may have learnt of the newest version later")
		require.Equal(t, deltafifo.Begin{ResourceVersion: "61", Time: served[1]}, until()["neighbour"])
		require.Equal(t, deltafifo.Begin{ResourceVersion: "800", Time: began}, until()["elsewhere"], "its resource versions may mean something else")
		c.listsAfterRollback()
		require.Equal(t, deltafifo.Begin{ResourceVersion: "100", Time: time.Now()}, until()["own"], "no earlier than its list")
	})
}

// The server did not answer for the stream when another etcd was found to be put back.
func TestAStreamThatIsProvedToBeInAnotherEtcdIsTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		c, _ := followed(all, "configmaps", &archive{now: 55}, 60)
		server := &watchCache{begun: 5, archive: &archive{now: 900}}
		d, notified := followed(all, "routes", &archive{fails: errDown}, 10)
		d.Watching("10")
		d.Saw(servedAs("r", "7", 700), false)
		time.Sleep(2 * acceptedAfter)
		_, err := c.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.Len(t, *notified, 1)
		require.Error(t, checkList(t, d, "900", nil))
		d.ListWith(server.lister)
		require.NoError(t, checkList(t, d, "900", nil))
	})
}

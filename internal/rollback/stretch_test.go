package rollback

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// starting is an API server that has just started. It does not answer yet for a busy stream with many claims. Quiet
// streams ask about these claims. The recorder has just started, too, so no stream is assigned to its etcd yet.
type starting struct {
	claimed uint64
	all     *Streams
	busy    *Stream
	etcd    *etcdDouble
	quiet   []*Stream
}

func newStarting(quiet int) *starting {
	const from, many = 100, 10 * fewLooks
	s := &starting{claimed: from + many, etcd: &etcdDouble{now: from + many, objects: map[string]string{strconv.Itoa(from + many): "x"}}}
	s.all = New(Options{})
	s.busy = listedBy(s.all.Add(Spec{Name: "busy"}), &etcdDouble{refused: apierrors.NewServiceUnavailable("storage is starting")})
	for revision := from + 1; revision <= from+many; revision++ {
		s.busy.Saw(written("x", strconv.Itoa(revision)), false)
	}
	s.busy.Reached(strconv.FormatUint(s.claimed, 10))
	for i := range quiet {
		s.quiet = append(s.quiet, listedBy(s.all.Add(Spec{Name: strconv.Itoa(i)}), s.etcd))
	}
	return s
}

func TestRecoveriesWaitUntilTheServerAnswersForAStreamWithManyClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarting(55)
		answered := 5 * time.Second
		time.AfterFunc(answered, func() { listedBy(s.busy, s.etcd) })
		began := time.Now()
		rest := make(chan int)
		for _, c := range s.quiet {
			go func() {
				found, _ := c.Unaccounted(t.Context(), 100, s.claimed, 10_000, true)
				rest <- len(found)
			}()
		}
		for range s.quiet {
			require.Zero(t, <-rest, "each quiet stream would have to list each of them")
		}
		require.LessOrEqual(t, time.Since(began), answered+3*unansweredRetry)
	})
}

func TestALookDoesNotWaitForAnUnansweredStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarting(1)
		s.busy.Watching("")
		time.Sleep(2 * acceptedAfter)
		began := time.Now()
		_, err := s.quiet[0].Unaccounted(t.Context(), 100, s.claimed, 10_000, false)
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
	})
}

func TestStreamsThatRecoverAtOnceAreGroupedTogether(t *testing.T) {
	const quiet, busy = 60, 6
	etcd := &etcdDouble{now: 110, objects: map[string]string{"105": "x"}}
	all := New(Options{})
	for i := range busy {
		c := listedBy(all.Add(Spec{Name: "busy" + strconv.Itoa(i)}), etcd)
		c.Saw(written("x", strconv.Itoa(100+i)), false)
		c.Reached("110")
	}
	var waiting []*Stream // all are added first: a round takes the streams that it finds
	for i := range quiet {
		c := listedBy(all.Add(Spec{Name: "quiet" + strconv.Itoa(i)}), etcd)
		c.Reached("90")
		waiting = append(waiting, c)
	}
	var recovering errgroup.Group
	for _, c := range waiting {
		recovering.Go(func() error {
			rest, err := c.Unaccounted(t.Context(), 100, 105, 10, true)
			if len(rest) > 0 {
				err = errors.Join(err, fmt.Errorf("%v are accounted for", rest))
			}
			return err
		})
	}
	require.NoError(t, recovering.Wait())
	rounds := (quiet+busy)/groupedPerRound + 1
	require.LessOrEqual(t, int(etcd.where.Load()), 2*(quiet+busy+rounds), "two lists for each stream, and two for each etcd in a round")
}

func TestAStreamForWhichTheServerNeverAnswersDelaysNoOtherForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarting(1)
		began := time.Now()
		rest, err := s.quiet[0].Unaccounted(t.Context(), 100, s.claimed, 10_000, true)
		require.NoError(t, err)
		require.Len(t, rest, int(s.claimed-100))
		require.LessOrEqual(t, time.Since(began), unansweredWait+2*unansweredRetry)
		s.busy.Follow(nil)
		began = time.Now()
		_, err = s.quiet[0].Unaccounted(t.Context(), 100, s.claimed, 10_000, true)
		require.NoError(t, err)
		require.Zero(t, time.Since(began), "no stream waits for one that is not followed any more")
	})
}

func TestWhileAStreamIsUnansweredTheOthersAreNotCheckedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarting(1)
		claimed := strconv.FormatUint(s.claimed, 10)
		answering := listedBy(s.all.Add(Spec{Name: "answering"}), s.etcd)
		answering.Saw(written("x", claimed), false)
		answering.Reached(claimed)
		_, err := s.quiet[0].Unaccounted(t.Context(), 100, s.claimed, 10_000, true)
		require.NoError(t, err)
		asked := s.etcd.byName.Load()
		require.Positive(t, asked)
		require.LessOrEqual(t, asked, int64(2))
	})
}

// Busier streams recover one after the other. The last one begins long after a quiet stream.
func TestAQuietStreamWaitsAsLongAsAnyBusierOneClaimsRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const from, each, to = 100, 40, 220
		etcd := &etcdDouble{now: to, objects: map[string]string{strconv.Itoa(to): "x"}}
		all := New(Options{})
		quiet := listedBy(all.Add(Spec{Name: "quiet"}), etcd)
		quiet.Reached(strconv.Itoa(from))
		var busy []*Stream
		for i := range (to - from) / each {
			c := listedBy(all.Add(Spec{Name: "busy" + strconv.Itoa(i)}), etcd)
			c.Saw(written("x", strconv.Itoa(from-1-i)), false)
			busy = append(busy, c)
		}
		var recovering errgroup.Group
		recovering.Go(func() error {
			for i, c := range busy {
				for revision := from + 1 + i*each; revision <= from+(i+1)*each; revision++ {
					time.Sleep(time.Second)
					c.Saw(written("x", strconv.Itoa(revision)), false)
				}
				c.Reached(strconv.Itoa(to))
			}
			return nil
		})
		rest, err := quiet.Unaccounted(t.Context(), from, to, 1000, true)
		require.NoError(t, recovering.Wait())
		require.NoError(t, err)
		require.Empty(t, rest, "the busier streams have claimed all of them")
	})
}

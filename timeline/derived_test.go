package timeline_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/erasure"
)

// fresh returns a Handler of the same record that has answered no request yet.
func (s *scene) fresh(t *testing.T) *scene {
	t.Helper()
	other := &scene{database: s.database, record: s.record}
	other.serve(t, time.Minute)
	return other
}

// same sends a request to a Handler with kept answers, and to a fresh one. It returns the objects in trouble.
func (s *scene) same(t *testing.T, seq int64) []trouble {
	t.Helper()
	v := url.Values{"at": {"seq:" + strconv.FormatInt(seq, 10)}}
	var derived, rebuilt json.RawMessage
	s.ask(t, "trouble", v, &derived)
	s.fresh(t).ask(t, "trouble", v, &rebuilt)
	require.JSONEq(t, string(rebuilt), string(derived), "%v", v)
	var got troubles
	require.NoError(t, json.Unmarshal(derived, &got))
	return got.Items
}

func drawing(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// A page follows the scene in steps of random length, and sometimes looks back.
func TestDerivedTroubleOfTheSceneEqualsRebuiltTrouble(t *testing.T) {
	s, random, most := newScene(t, time.Minute), drawing(t), 0
	for at := s.extent.WholeSeq; at < s.extent.LastSeq; at += 1 + random.Int64N(s.extent.LastSeq/10) {
		for _, seq := range []int64{at, s.extent.WholeSeq + random.Int64N(at-s.extent.WholeSeq+1), at} {
			most = max(most, len(s.same(t, seq)))
		}
	}
	require.Positive(t, most, "some object was in trouble")
}

// A page follows Pods that break, heal, disappear and come back, over some days with gaps and pauses.
func TestDerivedTroubleOfRandomChangesEqualsRebuiltTrouble(t *testing.T) {
	b, random := booktest.NewShop(t), drawing(t)
	b.List(b.Delta(delta.Sync, delta.SourceList, "deployments", "shop", "", `,"spec":{"replicas":1}`))
	s := served(t, b.DB, time.Minute)
	lives, live, interrupted, most := 0, map[string]string{}, false, 0
	for range 80 {
		b.Now = b.Now.Add(time.Duration(random.Int64N(int64(3 * time.Hour))))
		name, how := "p"+strconv.Itoa(random.IntN(5)), []string{running, crashes}[random.IntN(2)]
		write := func(kind delta.Type) {
			item := b.Delta(kind, delta.SourceWatch, "pods", name, booktest.Owned("Deployment", "deployments", "shop"), how)
			item.Object.(*booktest.Object).Be(live[name])
			b.Commit(item)
		}
		switch draw := random.IntN(20); {
		case draw == 0:
			b.Pause(time.Hour)
		case draw < 3 && interrupted:
			b.Commit(b.Listed("pods", "expired", delta.SourceRelist))
			interrupted = false
		case draw < 3:
			b.Commit(b.Interrupted("pods", "expired"))
			interrupted = true
		case draw < 6:
			b.Watched(delta.Updated, "deployments", "shop", "", `,"spec":{"replicas":`+strconv.Itoa(random.IntN(9))+`}`)
		case live[name] == "":
			lives++
			live[name] = "life-" + strconv.Itoa(lives)
			write(delta.Added)
		case draw < 9:
			write(delta.Deleted)
			delete(live, name)
		default:
			write(delta.Updated)
		}
		if random.IntN(2) == 0 {
			end, err := s.record.Extent(t.Context())
			require.NoError(t, err)
			most = max(most, len(s.same(t, end.LastSeq)))
		}
	}
	require.Positive(t, most, "some object was in trouble")
}

// broken returns a record with a Pod in trouble, after a first request for the troubles. The Pod's version has become
// unreadable since then.
func broken(t *testing.T) (b *booktest.Shop, s *scene) {
	t.Helper()
	b = booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "pods", "web", "", running)
	b.Watched(delta.Updated, "pods", "web", "", crashes)
	s = served(t, b.DB, time.Minute)
	var got troubles
	s.ask(t, "trouble", s.end(), &got)
	require.Len(t, got.Items, 1)
	b.DB.Exec(t, `UPDATE kuberewind.deltas_data SET digest = decode(md5('x'), 'hex') WHERE seq = 2`)
	b.Watched(delta.Added, "pods", "other", "", crashes)
	return b, s
}

// The unreadable version shows whether a Handler reads it again.
func TestTroubleIsDerivedIfTheEarlierAnswerStillHolds(t *testing.T) {
	for name, test := range map[string]struct {
		since   func(*testing.T, *booktest.Shop)
		derived bool
	}{
		"nothing but a delta": {func(*testing.T, *booktest.Shop) {}, true},
		"a gap":               {func(_ *testing.T, b *booktest.Shop) { b.Commit(b.Interrupted("pods", "expired")) }, false},
		"a restored record": {func(t *testing.T, b *booktest.Shop) {
			b.DB.Exec(t, `UPDATE kuberewind.batches SET digest = sha256('x') WHERE last_seq = 2`)
		}, false},
		"a delta of the unreadable object": {func(_ *testing.T, b *booktest.Shop) {
			b.Watched(delta.Updated, "pods", "web", `"labels":{"a":"b"},`, crashes)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := broken(t)
			test.since(t, b)
			var got struct {
				lacking
				Items []trouble
			}
			s.ask(t, "trouble", url.Values{"at": {"now"}}, &got)
			require.Equal(t, test.derived, got.kinds()["damaged"] == 0, "%v", got.Incomplete)
			want := map[bool]int{true: 2, false: 1}
			require.Len(t, got.Items, want[test.derived], "a rebuilt list lacks the unreadable object")
		})
	}
}

func TestRequestsForThePastKeepTheListThatAPageFollows(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	for i := range 6 {
		b.Watched(delta.Added, "pods", "p"+strconv.Itoa(i), "", running)
	}
	b.Watched(delta.Updated, "pods", "p0", "", crashes)
	s := served(t, b.DB, time.Minute)
	var got struct {
		lacking
		Items []trouble
	}
	s.ask(t, "trouble", s.end(), &got)
	for seq := 6; seq > 0; seq-- {
		s.ask(t, "trouble", url.Values{"at": {"seq:" + strconv.Itoa(seq)}}, &got)
		require.Empty(t, got.Items)
	}
	b.DB.Exec(t, `UPDATE kuberewind.deltas_data SET digest = decode(md5('x'), 'hex') WHERE seq = 7`)
	b.Watched(delta.Updated, "pods", "p1", "", crashes)
	s.ask(t, "trouble", url.Values{"at": {"now"}}, &got)
	require.Zero(t, got.kinds()["damaged"], "the damaged version was not read again: %v", got.Incomplete)
	require.Len(t, got.Items, 2)
}

func TestALongReasonIsCut(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	s := served(t, b.DB, time.Minute)
	for _, way := range []string{"rebuilt", "derived"} {
		b.Watched(delta.Added, "things", way, "", `,"status":{"conditions":[{"type":"Ready","status":"False","reason":"`+strings.Repeat("é", 100_000)+`"}]}`)
		var got troubles
		s.ask(t, "trouble", url.Values{"at": {"now"}}, &got)
		require.Equal(t, strings.Repeat("é", 126)+"…", got.named(way).Text)
	}
}

func TestTroubleDoesNotShowErasedValues(t *testing.T) {
	const leaked = "Hunter2IsThePassword"
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "things", "web", "", `,"status":{"conditions":[{"type":"Ready","status":"False","reason":"`+leaked+`"}]}`)
	s := served(t, b.DB, time.Minute)
	var got troubles
	s.ask(t, "trouble", s.end(), &got)
	require.Equal(t, leaked, got.named("web").Text)
	_, err := erasure.Erase(t.Context(), s.database.Connect(t), erasure.Options{
		Cluster: s.record.Cluster().Number, Value: []byte(leaked), Keyed: func(text []byte) []byte { return text }, Reason: "test", Recorder: "test", Version: "test",
	})
	require.NoError(t, err)
	s.ask(t, "trouble", s.end(), &got)
	require.Contains(t, got.named("web").Text, "erased")
}

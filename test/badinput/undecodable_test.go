package badinput_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

const notAnObject = `{"metadata":{"name":"broken","namespace":"default","uid":"u","labels":[7]},"data":{}}`

func TestAnItemThatCannotBeDecodedIsAGapAndTheOthersAreRecorded(t *testing.T) {
	t.Parallel()
	cms := configMaps()
	s := newServer(t, cms)
	cms.added = []string{notAnObject, "null"}
	cms.create("a")
	start := s.head()
	db := pgtest.New(t, pgtest.EmptyRecord)
	r := begin(t, s, db.URL(), listening)
	r.await(t, "level=ERROR", "items of a list could not be decoded", "default/broken")
	cms.create("c")
	record := open(t, db)
	record.awaitCount(cms, 2)
	require.Contains(t, r.metrics(t), `kuberewind_undecodable_total{group="",resource="configmaps"} 2`)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	g := record.requireGaps(cms, "first_list:relisted")[0]
	require.Contains(t, g.detail, "2 items of the list could not be decoded")
	require.Contains(t, g.detail, "item 0 of the list of v1 configmaps (default/broken) cannot be decoded")
	require.Contains(t, g.detail, "item 1 of the list of v1 configmaps cannot be decoded")
}

// That an object cannot be read any more does not say that it was deleted.
func TestAKnownObjectThatALaterListGarblesIsNotCalledDeleted(t *testing.T) {
	t.Parallel()
	cms := configMaps()
	s := newServer(t, cms)
	a, start, db, r := beginWith(t, s, cms)
	s.goAway()
	garbled := a.next()
	cms.write("DELETED", "a", garbled) // for the double only: the list below still has it
	cms.added = []string{fmt.Sprintf(`{"metadata":{"name":"a","namespace":"default","uid":%q,"labels":"red"}}`, a.uid)}
	cms.create("c")
	cms.compact()
	expiry := s.head()
	s.comeBack()
	r.await(t, "msg=listing", "cause=expired")
	record := open(t, db)
	record.awaitCount(cms, 3)
	cms.create("d")
	record.await("d", `SELECT EXISTS (SELECT FROM kuberewind.deltas WHERE name = 'd')`)
	r.end(t)
	requireVersions(t, append(append(cms.listed(t, start), cms.listed(t, expiry)[1:]...), cms.watched(t, expiry)...), record.history(cms))
	g := record.requireGaps(cms, "first_list:relisted", "expired:relisted")[1]
	require.Contains(t, g.detail, "default/a")
	require.Equal(t, [4]int{1, 0, 0, 1}, g.Counts, "c appeared, b is unchanged, nothing vanished")
}

// lastingly is garbage that comes again at the same place however often it is asked for.
var lastingly = map[string]struct {
	text  string
	words []string
}{
	"garbage":                    {"<html>\n", []string{"failed 5 times in the same way", "not JSON watch events"}},
	"an object without metadata": {`{"type":"MODIFIED","object":` + notAnObject + "}\n", []string{"failed 5 times in the same way", "default/broken", "cannot be decoded"}},
	"500":                        {errorEvent(status(http.StatusInternalServerError, "InternalError", "cannot convert", 0)), []string{"failed 5 times in the same way", "cannot convert"}},
}

func TestAPlaceThatCanNeverBeReadIsListedPastWithAGap(t *testing.T) {
	t.Parallel()
	for name, lasting := range lastingly {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cms := configMaps()
			s := newServer(t, cms)
			a, start, db, r := beginWith(t, s, cms)
			a.update(1)
			record := open(t, db)
			record.awaitCount(cms, 3)
			place := s.head()
			// From here on, every watch from before the next version breaks at it.
			cms.watches.add(always, func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Query().Get("resourceVersion") > fmt.Sprint(place) {
					cms.serveWatch(w, q)
					return
				}
				cms.stream(w, q, func(int, event) bool {
					send(w, lasting.text)
					return false
				})
			})
			s.cut()
			a.update(2)
			cms.create("c")
			after := s.head()
			r.await(t, "msg=listing", "cause=undecodable")
			record.awaitCount(cms, 5)
			a.update(1)
			record.awaitCount(cms, 6)
			r.end(t)
			g := record.requireGaps(cms, "first_list:relisted", "undecodable:relisted")[1]
			for _, word := range lasting.words {
				require.Contains(t, g.detail, word)
			}
			require.Equal(t, [2]string{fmt.Sprint(place), fmt.Sprint(after)}, [2]string{g.from, g.to})
			require.Equal(t, [4]int{1, 1, 0, 1}, g.Counts, "c appeared, a changed, b is unchanged")
			requireVersions(t, append(cms.listed(t, start), cms.between(t, start, place)...), record.history(cms)[:3])
			requireVersions(t, cms.listed(t, after)[1:], record.history(cms)[3:5])
			requireVersions(t, cms.watched(t, after), record.history(cms)[5:])
		})
	}
}

func TestAListFromWhichNoWatchCanGoOnIsAnOpenGapThatSaysSo(t *testing.T) {
	t.Parallel()
	for _, rv := range []string{"", "0"} {
		t.Run("resource version "+rv, func(t *testing.T) {
			t.Parallel()
			cms, rds := configMaps(), readings()
			s := newServer(t, cms, rds)
			rds.listRV = func(int) string { return rv }
			rds.create("r")
			a := cms.create("a")
			start := s.head()
			db := pgtest.New(t, pgtest.EmptyRecord)
			r := begin(t, s, db.URL())
			r.await(t, "level=WARN", "metrics.example/v1beta1 readings", "this resource cannot be recorded")
			a.update(1)
			record := open(t, db)
			record.awaitCount(cms, 2)
			record.await("the gap", `SELECT EXISTS (SELECT FROM kuberewind.gaps WHERE resource = 'readings')`)
			r.end(t)
			record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
			require.Contains(t, record.requireGaps(rds, "undecodable:open")[0].detail, "no watch can go on")
		})
	}
}

package badinput_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// hiccups are faults after which the server still has the whole history: none may cost anything.
var hiccups = map[string]struct {
	answer http.HandlerFunc
	// words of the error that the log must show; those of a list, where a watch fails otherwise.
	words, list []string
	// silent says that client-go tries again by itself, so that there is nothing to be logged.
	silent bool
}{
	"a login page with 200":       {answer: html, words: []string{"configmaps", "200 OK", "where JSON was expected", "Sign in", "is this the address of an API server"}},
	"500":                         {answer: refuse(http.StatusInternalServerError, "InternalError", "etcd is on fire", 0), words: []string{"configmaps", "etcd is on fire"}},
	"503 without a Status":        {answer: gateway, words: []string{"configmaps", "upstream connect error"}},
	"429 with Retry-After":        {answer: refuse(http.StatusTooManyRequests, "TooManyRequests", "slow down", 1), silent: true},
	"429 without Retry-After":     {answer: refuse(http.StatusTooManyRequests, "TooManyRequests", "slow down", 0), words: []string{"configmaps", "slow down"}},
	"an answer that breaks off":   {answer: breakOff, words: []string{"configmaps"}, list: []string{"configmaps", "after 0 items"}},
	"JSON that is something else": {answer: answerWith(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}`), words: []string{"configmaps", "not JSON watch events"}, list: []string{"configmaps", "Table without items"}},
	"JSON that is no object":      {answer: answerWith(`"hello"`), words: []string{"configmaps", "expected a JSON object, found string"}},
}

// gateway is a proxy in front of a server that is away.
func gateway(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "upstream connect error", http.StatusServiceUnavailable)
}

func answerWith(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, body) }
}

func breakOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	send(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"101"},"items":[{"metadata":{"na`)
	abort()
}

func TestAListThatFailsIsMadeAgainAndNothingIsLost(t *testing.T) {
	t.Parallel()
	for name, hiccup := range hiccups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cms := configMaps()
			s := newServer(t, cms)
			a, _ := cms.create("a"), cms.create("b")
			fault := cms.lists.add(1, hiccup.answer)
			db := pgtest.New(t, pgtest.EmptyRecord)
			r := record(t, s, db.URL())
			fault.await(t, r)
			if !hiccup.silent {
				words := hiccup.words
				if hiccup.list != nil {
					words = hiccup.list
				}
				r.await(t, append(words, "level=WARN", "list")...)
			}
			r.await(t, "msg=recording")
			start := s.head()
			a.update(2)
			record := open(t, db)
			record.awaitCount(cms, 4)
			r.end(t)
			record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
			record.requireGaps(cms, "first_list:relisted")
		})
	}
}

func TestAWatchThatFailsIsOpenedAgainWhereItWasAndNothingIsLost(t *testing.T) {
	t.Parallel()
	for name, hiccup := range hiccups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cms := configMaps()
			s := newServer(t, cms)
			a, start, db, r := beginWith(t, s, cms)
			fault := cms.watches.add(1, hiccup.answer)
			s.cut()
			a.update(3)
			fault.await(t, r)
			if !hiccup.silent {
				r.await(t, append(hiccup.words, "level=WARN")...)
			}
			a.update(2)
			requireNothingLost(t, db, r, cms, start, 7)
		})
	}
}

// beginWith starts to record a server whose configmaps are a and b.
func beginWith(t *testing.T, s *server, cms *resource, adapt ...func(*config.Config)) (a *life, start int, db *pgtest.Database, r *recording) {
	t.Helper()
	a, _ = cms.create("a"), cms.create("b")
	db = pgtest.New(t, pgtest.EmptyRecord)
	r = begin(t, s, db.URL(), adapt...)
	cms.awaitWatch(t, r)
	return a, s.head(), db, r
}

// requireNothingLost waits until so many deltas are on record, and wants them to be all that was served since the list at
// start, with no other gap than that list.
func requireNothingLost(t *testing.T, db *pgtest.Database, r *recording, cms *resource, start, deltas int) {
	t.Helper()
	record := open(t, db)
	record.awaitCount(cms, deltas)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

// brokenStreams are watches that begin well and then fail. Each is given what events there are.
// A stream that is cut after an event has no words: the recorder opens it again at once.
var brokenStreams = map[string]struct {
	serve func(w http.ResponseWriter, n int, e event) (more bool)
	words []string
}{
	"cut in mid-object by a server that dies": {
		func(w http.ResponseWriter, n int, e event) bool { return half(w, n, e, abort) }, nil},
	"cut in mid-object by an orderly end": {
		func(w http.ResponseWriter, n int, e event) bool { return half(w, n, e, func() {}) }, nil},
	"garbage after an event": {
		after(1, "<html>no</html>\n"), []string{"configmaps", "not JSON watch events", "invalid character '<'"}},
	"garbage within an event": {
		after(1, `{"type":"MODIFIED","object":{"metadata":{"name":"a",,}}}`), []string{"configmaps", "not JSON watch events"}},
	"an event of a type that does not exist": {
		after(1, `{"type":"RENAMED","object":{}}`), []string{"configmaps", "RENAMED"}},
	"an event without an object": {
		after(1, `{"type":"MODIFIED"}`), []string{"configmaps", "cannot be decoded", "no object"}},
	"an object that is none": {
		after(1, `{"type":"MODIFIED","object":{"metadata":"none"}}`), []string{"configmaps", "cannot be decoded"}},
	"an ERROR without a Status": {
		after(1, `{"type":"ERROR","object":{"oops":1}}`), []string{"configmaps", "ERROR event without a Status", "oops"}},
	"500 in the stream": {
		after(1, errorEvent(status(http.StatusInternalServerError, "InternalError", "etcd is on fire", 0))), []string{"configmaps", "etcd is on fire"}},
	"429 in the stream": {
		after(1, errorEvent(status(http.StatusTooManyRequests, "TooManyRequests", "slow down", 1))), []string{"configmaps", "slow down"}},
	"503 in the stream": {
		after(1, errorEvent(status(http.StatusServiceUnavailable, "ServiceUnavailable", "the backend is away", 0))), []string{"configmaps", "the backend is away"}},
	"410 that another connection does not confirm": {
		after(1, expired), nil},
}

func half(w http.ResponseWriter, n int, e event, end func()) bool {
	if n == 0 {
		send(w, e.frame())
		return true
	}
	send(w, e.frame()[:len(e.frame())/2])
	end()
	return false
}

// after sends so many events and then something else.
func after(events int, text string) func(http.ResponseWriter, int, event) bool {
	return func(w http.ResponseWriter, n int, e event) bool {
		if n < events {
			send(w, e.frame())
			return true
		}
		send(w, text)
		return false
	}
}

func TestAStreamThatBreaksIsTakenUpWhereItBrokeAndNothingIsLost(t *testing.T) {
	t.Parallel()
	for name, broken := range brokenStreams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cms := configMaps()
			s := newServer(t, cms)
			a, start, db, r := beginWith(t, s, cms)
			fault := cms.watches.add(1, func(w http.ResponseWriter, q *http.Request) {
				cms.stream(w, q, func(n int, e event) bool { return broken.serve(w, n, e) })
			})
			s.cut()
			a.update(4)
			fault.await(t, r)
			if broken.words != nil {
				r.await(t, append(broken.words, "level=WARN")...)
			}
			a.update(1)
			requireNothingLost(t, db, r, cms, start, 7)
		})
	}
}

func TestAServerThatIsAwayForAWhileCostsNothing(t *testing.T) {
	t.Parallel()
	cms := configMaps()
	s := newServer(t, cms)
	a, start, db, r := beginWith(t, s, cms)
	s.goAway()
	a.update(5)
	r.await(t, "level=WARN", "list and watch ended, will retry", "configmaps", strings.TrimPrefix(s.URL, "https://"))
	s.comeBack()
	a.delete()
	requireNothingLost(t, db, r, cms, start, 8)
}

func TestAHistoryThatIsGoneIsAGapWithItsCost(t *testing.T) {
	t.Parallel()
	cms := configMaps()
	s := newServer(t, cms)
	a, start, db, r := beginWith(t, s, cms)
	gone, kept := cms.create("gone"), cms.create("kept")
	record := open(t, db)
	record.awaitCount(cms, 4)
	seen := s.head()
	s.goAway()
	gone.delete()
	kept.update(3)
	cms.create("fresh")
	cms.compact()
	expiry := s.head()
	s.comeBack()
	r.await(t, "msg=listing", "cause=expired", "too old resource version")
	a.update(1)
	// a, b, gone, kept; then gone's end, kept's last version, fresh; then a's update.
	record.awaitCount(cms, 8)
	r.await(t, "level=WARN", "versions may have been missed", "resource=configmaps", "cause=expired", "appeared=1 changed=1 vanished=1")
	r.end(t)

	history := record.history(cms)
	requireVersions(t, append(cms.listed(t, start), cms.between(t, start, seen)...), history[:4])
	byName := map[string]row{}
	for _, x := range history[4:7] {
		byName[x.Name] = x
	}
	require.Equal(t, "inferred", byName["gone"].source)
	require.Equal(t, "Deleted", byName["gone"].Type)
	require.Equal(t, fmt.Sprint(expiry), byName["gone"].RV, "it had vanished at the latest by then")
	for _, want := range cms.listed(t, expiry) {
		if got, changed := byName[want.Name]; changed {
			require.Equal(t, want, got.version)
			require.Equal(t, "relist", got.source)
		}
	}
	requireVersions(t, cms.watched(t, expiry), history[7:])
	g := record.requireGaps(cms, "first_list:relisted", "expired:relisted")[1]
	require.Equal(t, [4]int{1, 1, 1, 2}, g.Counts, "fresh appeared, kept changed, gone vanished, a and b are unchanged")
	require.Equal(t, fmt.Sprint(expiry), g.to)
	require.Contains(t, g.detail, "too old resource version")
}

// between are the versions after one resource version, up to another.
func (r *resource) between(t *testing.T, from, to int) []version {
	t.Helper()
	all := r.watched(t, from)
	return all[:len(all)-len(r.watched(t, to))]
}

func requireVersions(t *testing.T, want []version, rows []row) {
	t.Helper()
	got := make([]version, len(rows))
	for i, x := range rows {
		got[i] = x.version
	}
	require.Equal(t, want, got)
}

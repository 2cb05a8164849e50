package badinput_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

func TestDiscoveryThatFailsIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		answer http.HandlerFunc
		words  []string
	}{
		"a login page": {html, []string{"where JSON was expected", "Sign in"}},
		"500":          {refuse(http.StatusInternalServerError, "InternalError", "etcd is on fire", 0), []string{"discovery of https://127.0.0.1:", "etcd is on fire"}},
		"401":          {unauthorized, []string{"discovery of https://127.0.0.1:", "does not accept the credentials"}},
		"403":          {refuse(http.StatusForbidden, "Forbidden", "discovery is forbidden", 0), []string{"discovery of https://127.0.0.1:", "discovery is forbidden"}},
		"garbage":      {answerWith(`{"kind":`), []string{"discovery of https://127.0.0.1:"}},
		"nothing":      {answerWith(`{}`), []string{"discovery of https://127.0.0.1:", "offers no resources at all"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cms := configMaps()
			s := newServer(t, cms)
			a := cms.create("a")
			s.discovery.add(always, fault.answer)
			db := pgtest.New(t, pgtest.EmptyRecord)
			r := record(t, s, db.URL())
			r.await(t, append(fault.words, "level=WARN")...)
			s.discovery.lift()
			r.await(t, "msg=recording", "streams=1")
			cms.awaitWatch(t, r)
			start := s.head()
			a.update(2)
			requireNothingLost(t, db, r, cms, start, 3)
		})
	}
}

func TestAGroupThatCannotBeDiscoveredHoldsUpNoOtherAndIsRecordedWhenItCan(t *testing.T) {
	t.Parallel()
	cms, rds := configMaps(), readings()
	s := newServer(t, cms, rds)
	a := cms.create("a")
	rds.create("r")
	start := s.head()
	broken := refuse(http.StatusServiceUnavailable, "ServiceUnavailable", "the backend of metrics.example is away", 0)
	s.discovery.add(always, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/apis/metrics.example/v1beta1" {
			broken(w, q)
			return
		}
		s.discover(w, q)
	})
	db := pgtest.New(t, pgtest.EmptyRecord)
	r := begin(t, s, db.URL())
	r.await(t, "level=WARN", "cannot be discovered", "metrics.example/v1beta1")
	a.update(1)
	record := open(t, db)
	record.awaitCount(cms, 2)
	require.Empty(t, record.history(rds))
	s.discovery.lift()
	record.awaitCount(rds, 1)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireHistory(rds, rds.listed(t, start))
	record.requireGaps(rds, "first_list:relisted")
}

package badinput_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

var (
	unauthorized = refuse(http.StatusUnauthorized, "Unauthorized", "Unauthorized", 0)
	notServed    = refuse(http.StatusNotFound, "NotFound", "the server could not find the requested resource", 0)
)

func forbidden(verb string) http.HandlerFunc {
	return refuse(http.StatusForbidden, "Forbidden", `configmaps is forbidden: User "me" cannot `+verb+` resource "configmaps" in API group "" at the cluster scope`, 0)
}

// denials are refusals, with the cause on record and the advice in the log.
var denials = map[string]struct {
	answer func(verb string) http.HandlerFunc
	cause  string
	words  []string
}{
	"403": {forbidden, "forbidden", []string{`User \"me\" cannot`, `grant the recorder the rule {apiGroups: [\"\"], resources: [\"configmaps\"], verbs: [list, watch]}`, "--exclude configmaps"}},
	"401": {func(string) http.HandlerFunc { return unauthorized }, "unauthorized", []string{"Unauthorized", "does not accept the credentials", "renew"}},
	"404": {func(string) http.HandlerFunc { return notServed }, "not_found", []string{"could not find the requested resource"}},
}

func TestAListThatIsDeniedIsAnOpenGapUntilItIsAllowed(t *testing.T) {
	t.Parallel()
	for name, denial := range denials {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cms, rds := configMaps(), readings()
			s := newServer(t, cms, rds)
			a := cms.create("a")
			rds.create("r")
			cms.lists.add(always, denial.answer("list"))
			db := pgtest.New(t, pgtest.EmptyRecord)
			// The recorder is ready: it has said what it cannot do, and does the rest.
			r := begin(t, s, db.URL())
			r.await(t, append(denial.words, "level=WARN", "configmaps")...)
			record := open(t, db)
			record.awaitCount(rds, 1)
			record.await("an open gap", `SELECT EXISTS (SELECT FROM kuberewind.gaps WHERE resource = 'configmaps' AND open AND cause = $1)`, denial.cause)
			record.requireGaps(rds, "first_list:relisted")
			a.update(2)
			start := s.head()
			cms.lists.lift()
			record.awaitCount(cms, 1)
			a.update(1)
			record.awaitCount(cms, 2)
			r.end(t)
			record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
			require.NotEmpty(t, record.requireGaps(cms, denial.cause+":relisted")[0].detail)
		})
	}
}

func TestADeniedWatchIsAnOpenGapThatMissesNothingIfTheHistoryIsKept(t *testing.T) {
	t.Parallel()
	for name, denial := range denials {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cms := configMaps()
			s := newServer(t, cms)
			a, start, db, r := beginWith(t, s, cms, listening)
			cms.watches.add(always, denial.answer("watch"))
			s.cut()
			a.update(3)
			r.await(t, append(denial.words, "level=WARN", "configmaps", "watch")...)
			record := open(t, db)
			record.await("an open gap", `SELECT EXISTS (SELECT FROM kuberewind.gaps WHERE resource = 'configmaps' AND open AND cause = $1)`, denial.cause)
			a.update(1)
			r.await(t, "level=WARN", "a gap is open", "resource=configmaps", "cause="+denial.cause)
			require.Contains(t, r.metrics(t), "\nkuberewind_gaps_open 1\n")
			cms.watches.lift()
			record.awaitCount(cms, 6)
			r.await(t, "level=INFO", "the gap is closed: nothing was missed", "resource=configmaps")
			require.Contains(t, r.metrics(t), `kuberewind_gaps_total{cause="`+denial.cause+`",group="",outcome="resumed",resource="configmaps"} 1`)
			r.end(t)
			record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
			record.requireGaps(cms, "first_list:relisted", denial.cause+":resumed")
		})
	}
}

func TestTheGapOfAResourceWithoutWatchRightsOutlivesTheRecorder(t *testing.T) {
	t.Parallel()
	cms := configMaps()
	s := newServer(t, cms)
	a := cms.create("a")
	start := s.head()
	cms.watches.add(always, forbidden("watch"))
	db := pgtest.New(t, pgtest.EmptyRecord)
	r := begin(t, s, db.URL())
	record := open(t, db)
	record.await("an open gap", `SELECT EXISTS (SELECT FROM kuberewind.gaps WHERE resource = 'configmaps' AND open AND cause = 'forbidden')`)
	a.update(1)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start))
	record.requireGaps(cms, "first_list:relisted", "forbidden:open")

	cms.watches.lift()
	r = begin(t, s, db.URL(), sameKey(r))
	a.update(1)
	record.awaitCount(cms, 3)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted", "forbidden:resumed")
}

package badinput_test

import (
	"testing"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

func TestAServerThatDoesNotLieIsRecorded(t *testing.T) {
	t.Parallel()
	cms, rds := configMaps(), readings()
	s := newServer(t, cms, rds)
	a, _ := cms.create("a"), cms.create("b")
	start := s.head()
	db := pgtest.New(t, pgtest.EmptyRecord)
	r := begin(t, s, db.URL())
	a.update(3)
	a.delete()
	cms.create("a").update(2)
	rds.create("r")
	record := open(t, db)
	record.awaitCount(cms, 9)
	record.awaitCount(rds, 1)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireHistory(rds, rds.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

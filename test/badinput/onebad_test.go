package badinput_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// instead answers one path of discovery with something else.
func (s *server) instead(path string, answer http.HandlerFunc) {
	s.discovery.add(always, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			answer(w, r)
			return
		}
		s.discover(w, r)
	})
}

// withoutEnd writes for as long as it is read.
func withoutEnd(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, err := io.WriteString(w, `{"kind":"APIResourceList","resources":[`)
	for part := strings.Repeat(`{"name":"x"},`, 5000); err == nil; {
		_, err = io.WriteString(w, part)
	}
}

func TestNamesThatNoAPICanHaveHoldUpNothingElse(t *testing.T) {
	t.Parallel()
	cms, rds := configMaps(), readings()
	s := newServer(t, cms, rds)
	a := cms.create("a")
	rds.create("r")
	start := s.head()
	named := func(name string) string {
		return fmt.Sprintf(`{"name":%s,"namespaced":true,"kind":"Reading","verbs":["list","watch"]}`, name)
	}
	s.instead("/apis/metrics.example/v1beta1", answerWith(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"metrics.example/v1beta1","resources":[`+strings.Join([]string{
		named(`"n\u0000l"`), named(`".."`), named(`""`), named(`"\u001b[31m"`), named(`"` + strings.Repeat("x", 100_000) + `"`), named(`"'; drop table deltas; --"`), named(`"readings"`)}, ",")+`]}`))
	db := pgtest.New(t, pgtest.EmptyRecord)
	r := begin(t, s, db.URL())
	r.await(t, "level=WARN", "discovery has resources that are not recorded", "count=5", `n\\x00l`)
	a.update(1)
	record := open(t, db)
	record.awaitCount(cms, 2)
	record.awaitCount(rds, 1)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireHistory(rds, rds.listed(t, start))
	require.NotContains(t, r.log.String(), strings.Repeat("x", 1000))
}

func TestAStreamThatTheDatabaseRejectsHoldsUpNoOtherAndIsOpenedOnceItIsTaken(t *testing.T) {
	t.Parallel()
	cms, rds := configMaps(), readings()
	s := newServer(t, cms, rds)
	a := cms.create("a")
	rds.create("r")
	start := s.head()
	db := pgtest.New(t, pgtest.EmptyRecord)
	db.Exec(t, "ALTER TABLE kuberewind.streams ADD CONSTRAINT no_readings CHECK (resource <> 'readings')")
	r := begin(t, s, db.URL())
	r.await(t, "level=WARN", "resource discovery failed; will retry", "readings", "no_readings")
	a.update(1)
	record := open(t, db)
	record.awaitCount(cms, 2)
	db.Exec(t, "ALTER TABLE kuberewind.streams DROP CONSTRAINT no_readings")
	record.awaitCount(rds, 1)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireHistory(rds, rds.listed(t, start))
}

func TestDiscoveryOfOneGroupWithoutEndHoldsUpNoOtherAndTheLogStaysInItsForm(t *testing.T) {
	t.Parallel()
	cms, rds := configMaps(), readings()
	s := newServer(t, cms, rds)
	cms.create("a")
	s.instead("/apis/metrics.example/v1beta1", withoutEnd)
	db := pgtest.New(t, pgtest.EmptyRecord)
	i := invocation{args: []string{"--kubeconfig=" + s.kubeconfig(t), "--database=" + db.URL(), "--log-format=json"}}
	i.during = func(t *testing.T, process *os.Process) {
		open(t, db).awaitCount(cms, 1)
		require.NoError(t, process.Signal(syscall.SIGTERM))
	}
	code, said := recorder.run(t, i)
	require.Equal(t, exitDone, code, said)
	require.Contains(t, said, "/apis/metrics.example/v1beta1 is larger than 67108864 bytes")
	require.Contains(t, said, `"from":"client-go"`)
	for line := range strings.Lines(said) {
		require.True(t, json.Valid([]byte(line)), line)
	}
}

package badinput_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// odd are members of objects that JSON, or a lax reading of it, allows. Each has a first and a second version. sql is what a
// query must find in the second one as jsonb, at the path data.
var odd = map[string]struct {
	first, second string
	path, sql     string
	exact         bool // jsonb cannot hold it as it is
}{
	"1.5 MiB": {
		first: `{"v":"` + strings.Repeat("lorem ipsum ", 1<<17) + `"}`, second: `{"v":"` + strings.Repeat("Lorem ipsum ", 1<<17) + `!"}`,
		path: `length(object #>> '{data,v}')::text`, sql: fmt.Sprint(12<<17 + 1)},
	"NUL in a value":       {first: `{"v":"a"}`, second: `{"v":"a\u0000b"}`, path: `object #>> '{data,v}'`, sql: "a\uFFFDb", exact: true},
	"NUL in a key":         {first: `{"a\u0000b":"1"}`, second: `{"a\u0000b":"2"}`, path: "object #>> '{data,a\uFFFDb}'", sql: "2", exact: true},
	"a lone surrogate":     {first: `{"v":"\ud800 and \udfff"}`, second: `{"v":"\udbff"}`, path: `object #>> '{data,v}'`, sql: "\uFFFD", exact: true},
	"a pair of surrogates": {first: `{"v":"\ud83d\ude00"}`, second: `{"v":"\ud83d\ude01"}`, path: `object #>> '{data,v}'`, sql: "\U0001F601"},
	"invalid UTF-8":        {first: "{\"v\":\"caf\xe9\"}", second: "{\"v\":\"\xff\xfe caf\xe9\"}", path: `object #>> '{data,v}'`, sql: "\uFFFD caf\uFFFD", exact: true},
	"numbers beyond 2^53": {first: `{"v":9007199254740993}`, second: `{"v":-9007199254740995,"w":123456789012345678901234567890.125}`,
		path: `(object #>> '{data,v}') || ' ' || (object #>> '{data,w}')`, sql: "-9007199254740995 123456789012345678901234567890.125"},
	"numbers in odd spellings":               {first: `{"v":1E2}`, second: `{"v":-0.0,"w":1.50e-3}`, path: `(object #>> '{data,v}') || ' ' || (object #>> '{data,w}')`, sql: "0 0.0015"},
	"a number that no server can hold":       {first: `{"v":1e999999}`, second: `{"v":2e999999}`, path: `jsonb_typeof(object #> '{data,v}')`, sql: "string", exact: true},
	"deep nesting":                           {first: nested(500, `1`), second: nested(500, `2`), path: `jsonb_typeof(object -> 'data')`, sql: "object"},
	"nesting deeper than the database takes": {first: nested(9000, `1`), second: nested(9000, `2`), path: `object #>> '{metadata,name}'`, sql: "odd", exact: true},
	"explicit nulls":                         {first: `{"v":null,"w":null}`, second: `{"v":null,"x":{"y":null}}`, path: `(object -> 'data')::text`, sql: `{"v": null, "x": {"y": null}}`},
	"null after a value":                     {first: `{"v":1}`, second: `{"v":null}`, path: `(object -> 'data')::text`, sql: `{"v": null}`},
	"one key twice":                          {first: `{"v":1,"v":2}`, second: `{"v":3,"v":4,"v":5}`, path: `object #>> '{data,v}'`, sql: "5"},
	"an empty key and keys for pointers": {first: `{"":{"":1},"a/b":{"~":1},"~1":1,"é":1}`, second: `{"":{"":2},"a/b":{"~":2},"~1":2,"é":2}`,
		path: `(object #>> '{data,"",""}') || (object #>> '{data,a/b,~}') || (object #>> '{data,~1}')`, sql: "222"},
	"a member of every type in turn": {first: `{"v":[]}`, second: `{"v":{}}`, path: `jsonb_typeof(object #> '{data,v}')`, sql: "object"},
}

func nested(depth int, inner string) string {
	return strings.Repeat(`{"a":`, depth) + inner + strings.Repeat("}", depth)
}

func TestAnObjectOfAnOddFormIsRecordedAsItWasServed(t *testing.T) {
	t.Parallel()
	for name, form := range odd {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cms := configMaps()
			s := newServer(t, cms)
			uid := uuid.NewString()
			write := func(kind, data string) { cms.write(kind, "odd", cms.object("odd", uid, `,"data":`+data)) }
			// It comes in a list and in a watch, new and changed.
			write("ADDED", form.first)
			start := s.head()
			db := pgtest.New(t, pgtest.EmptyRecord)
			r := begin(t, s, db.URL())
			write("MODIFIED", form.second)
			write("MODIFIED", form.first)
			write("DELETED", form.second)
			cms.write("ADDED", "odd", cms.object("odd", uuid.NewString(), `,"data":`+form.second))
			record := open(t, db)
			record.awaitCount(cms, 5)
			r.end(t)
			record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
			record.requireGaps(cms, "first_list:relisted")
			var found string
			var exact bool
			err := record.conn.QueryRow(t.Context(), `SELECT `+form.path+`, exact IS NOT NULL FROM kuberewind.deltas ORDER BY seq DESC LIMIT 1`).Scan(&found, &exact)
			require.NoError(t, err)
			require.Equal(t, form.sql, found)
			require.Equal(t, form.exact, exact)
			// Another recorder folds what is on record, and goes on from it.
			r = begin(t, s, db.URL(), sameKey(r))
			cms.write("MODIFIED", "odd", cms.object("odd", cms.watched(t, start)[3].UID, `,"data":`+form.first))
			record.awaitCount(cms, 6)
			r.end(t)
			record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
			record.requireGaps(cms, "first_list:relisted")
			require.NotContains(t, r.log.String(), "level=ERROR")
		})
	}
}

func TestTheFirstOfTwoObjectsOfOneNameIsRecordedAndTheOtherIsReported(t *testing.T) {
	t.Parallel()
	cms := configMaps()
	s := newServer(t, cms)
	twin := cms.object("a", uuid.NewString(), `,"data":{"twin":"1"}`)(7)
	cms.added = []string{twin}
	a, start, db, r := beginWith(t, s, cms)
	_ = a
	cms.create("c")
	record := open(t, db)
	record.awaitCount(cms, 3)
	r.end(t)
	want := append([]version{parse(t, "Sync", twin)}, cms.listed(t, start)[1:]...)
	record.requireHistory(cms, want, cms.watched(t, start))
	g := record.requireGaps(cms, "first_list:relisted")[0]
	require.Contains(t, g.detail, "1 items repeat a key of the same list and were left out: default/a")
}

// anonymous is an object of an aggregated API that keeps no identity of its objects.
func (r *resource) anonymous(name, metadata, value string) func(int) string {
	return func(int) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"default"%s},"value":%s}`,
			r.groupVersion(), r.kind, name, metadata, value)
	}
}

func TestObjectsWithoutUIDOrResourceVersionAreRecordedOnce(t *testing.T) {
	t.Parallel()
	for name, metadata := range map[string]string{
		"neither":                 ``,
		"no UID":                  `,"resourceVersion":"%d"`,
		"no resource version":     `,"uid":"0d1b7f6e-6e5b-4a34-8d2c-LIFE"`,
		"a UID that is no UUID":   `,"uid":"reading/LIFE","resourceVersion":"%d"`,
		"opaque resource version": `,"uid":"0d1b7f6e-6e5b-4a34-8d2c-LIFE","resourceVersion":"v%d-x"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rds := readings()
			s := newServer(t, rds)
			life := "2f6c3c1e9a11"
			write := func(kind, value string) {
				rds.write(kind, "r", func(rv int) string {
					m := strings.Replace(metadata, "LIFE", life, 1)
					if strings.Contains(m, "%d") {
						m = fmt.Sprintf(m, rv)
					}
					return rds.anonymous("r", m, value)(rv)
				})
			}
			write("ADDED", "1")
			start := s.head()
			db := pgtest.New(t, pgtest.EmptyRecord)
			r := begin(t, s, db.URL())
			for _, value := range []string{"2", "3", "2"} {
				write("MODIFIED", value)
			}
			write("DELETED", "2")
			life = "3a7d4d2f0b22"
			write("ADDED", "9")
			record := open(t, db)
			record.awaitCount(rds, 6)
			r.end(t)
			record.requireHistory(rds, rds.listed(t, start), rds.watched(t, start))
			record.requireGaps(rds, "first_list:relisted")
		})
	}
}

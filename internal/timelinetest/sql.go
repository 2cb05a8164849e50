package timelinetest

import (
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
)

// SQL holds the pieces of docs/timeline.md, by the comment with which each begins.
type SQL map[string]string

// Documented reads the pieces from the document at a path.
func Documented(t testing.TB, path string) SQL {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	pieces := SQL{}
	for block := range strings.SplitSeq(string(text), "```sql\n") {
		name, sql, _ := strings.Cut(block, "\n")
		if name, ok := strings.CutPrefix(strings.TrimSpace(name), "-- "); ok {
			pieces[name], _, _ = strings.Cut(sql, "```")
		}
	}
	return pieces
}

// Classified creates the table marks from the documented query, so that each comparison need not compute it again. The
// table belongs to this connection.
func (s SQL) Classified(t testing.TB, db *pgx.Conn) {
	t.Helper()
	_, err := db.Exec(t.Context(), "CREATE TEMPORARY TABLE marks AS "+s["marks"])
	require.NoError(t, err)
}

// With returns a piece with values in place of psql's variables.
func (s SQL) With(piece string, values map[string]string) string {
	sql := s[piece]
	for name, value := range values {
		sql = strings.ReplaceAll(sql, ":'"+name+"'", "'"+strings.ReplaceAll(value, "'", "''")+"'")
	}
	return sql
}

// Words are the names that filters of a record use.
type Words struct {
	Namespaces, Resources, Names, Managers, Paths []string
	// Labelled are resources of Namespaces[0] with objects that have Label, as key=value. The documented SQL folds an
	// object for each delta, which is fast for few resources.
	Labelled []string
	Label    string
}

// OfScene returns the words of the recorded scene.
func OfScene() Words {
	return Words{
		Namespaces: []string{"shop", "kube-system", "default", "legacy", "nowhere"},
		Resources:  []string{"pods", "deployments.apps", "nodes", "configmaps", "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io"},
		Names:      []string{"web", "web-*", "*-0*", "node-001", "*"},
		Managers:   []string{"kubectl-set", "kube-controller-manager", "kubelet", "Helm", "absent"},
		Paths:      []string{"/spec/replicas", "/spec/template", "/status", "/metadata/labels/app", "/data/color", "/spec"},
		Labelled:   []string{"deployments.apps", "services", "replicasets.apps"}, Label: "app=web",
	}
}

// A Choice is a filter: as parameters, and as conditions in SQL, each after AND.
type Choice struct {
	Values url.Values
	Where  string
	Hidden string // the same for the excluded heartbeats
}

// Choose returns a random filter of at most most parts. Without a class, the filter excludes heartbeats.
func (s SQL) Choose(random *rand.Rand, words Words, most int) Choice {
	c, class := Choice{Values: url.Values{}}, " AND class <> 'heartbeat'"
	add := func(name, value string) {
		if c.Values.Has(name) {
			return // The timeline combines two values of one name with OR.
		}
		c.Values.Add(name, value)
		c.Where += " AND " + s.With(name, map[string]string{name: strings.ReplaceAll(value, "*", "%")})
	}
	pick := func(all []string) string { return all[random.IntN(len(all))] }
	kinds := []func(){
		func() { add("namespace", pick(words.Namespaces)) },
		func() { add("resource", pick(words.Resources)) },
		func() { add("name", pick(words.Names)) },
		func() { add("manager", pick(words.Managers)) },
		func() { add("type", pick(delta.TypeWords())) },
		func() {
			c.Values.Set("class", pick([]string{"change", "added", "deleted", "status", "event", "sync", "heartbeat"}))
			class = " AND " + s.With("class", map[string]string{"class": c.Values.Get("class")})
		},
		func() { add("path", pick(words.Paths)) },
		func() {
			if len(words.Labelled) == 0 || c.Values.Has("namespace") || c.Values.Has("resource") {
				return
			}
			add("namespace", words.Namespaces[0])
			add("resource", pick(words.Labelled))
			c.Values.Set("label", words.Label)
			key, value, _ := strings.Cut(words.Label, "=")
			c.Where += " AND " + s.With("label", map[string]string{"key": key, "value": value})
		},
	}
	for _, i := range random.Perm(len(kinds))[:random.IntN(most+1)] {
		kinds[i]()
	}
	if c.Hidden = c.Where + " AND class = 'heartbeat'"; c.Values.Get("class") == "heartbeat" {
		c.Hidden = " AND false"
	}
	c.Where += class
	return c
}

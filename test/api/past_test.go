package api_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// chosen are random revisions, and the end.
func (s *system) chosen(t *testing.T, random *rand.Rand) []revision {
	t.Helper()
	require.GreaterOrEqual(t, len(s.cuts), *revisions, "revisions to choose from: raise -writes")
	var chosen []revision
	for _, i := range random.Perm(len(s.cuts))[:*revisions] {
		chosen = append(chosen, s.dated(t, s.cuts[i]))
	}
	return chosen
}

// pastPairs are random questions about a kind at a revision, one or two of each form.
func (e *exam) pastPairs(random *rand.Rand, k kind, r revision) []pair {
	pairs := []pair{e.list(random, k, r, asJSON), e.list(random, k, r, asMetadataList), e.list(random, k, r, asTable)}
	names := e.names(k, r)
	missing := objectName{name: "nobody"}
	if k.namespaced {
		missing.namespace = "shop"
	}
	pairs = append(pairs, e.get(k, r, missing, asJSON))
	if len(names) > 0 {
		pairs = append(pairs, e.get(k, r, choose(random, names), asJSON))
	}
	return pairs
}

// list is a random list: of the instant itself, or at the end of an exact version.
func (e *exam) list(random *rand.Rand, k kind, r revision, accept string) pair {
	namespace := ""
	if k.namespaced {
		namespace = choose(random, []string{"", "", "shop", "shop-2", "nowhere"})
	}
	q := question{root: r, path: k.path(namespace), accept: accept}
	if accept == asTable {
		q = q.with("includeObject=" + choose(random, []string{"None", "Metadata", "Object"}))
	}
	switch random.IntN(4) {
	case 0:
		q = q.with("labelSelector=" + choose(random, labelSelectors))
	case 1:
		q = q.with("fieldSelector=" + choose(random, k.fieldSelectors()))
	case 2:
		q = q.with("limit=" + strconv.Itoa(choose(random, []int{1, 3, 20, 500})))
	}
	p := pair{kind: k, theirs: q.exactly(r), ours: q, at: r}
	if random.IntN(2) == 0 && e.system.reached(e.T, k) >= r.rv {
		p.ours = p.theirs
		p.ours.root, p.at = e.end, e.end // ages are those of the instant, whatever the version
	}
	return p
}

type objectName struct{ namespace, name string }

func (e *exam) get(k kind, r revision, o objectName, accept string) pair {
	theirs := question{path: k.path(o.namespace), accept: accept}.with("fieldSelector=metadata.name=" + o.name).exactly(r)
	return pair{kind: k, theirs: theirs, ours: question{root: r, path: k.path(o.namespace, o.name), accept: accept}, one: o.name, at: r}
}

// names are the objects that the real server had.
func (e *exam) names(k kind, r revision) (names []objectName) {
	list := e.system.theirs.ask(e.Context(), question{path: k.path(""), accept: asMetadataList}.exactly(r))
	items, _ := at(list.body, "items").([]any)
	for _, item := range items {
		name, _ := at(item, "metadata", "name").(string)
		namespace, _ := at(item, "metadata", "namespace").(string)
		names = append(names, objectName{namespace, name})
	}
	return names
}

func (e *exam) atRandomRevisions() {
	random := rand.New(rand.NewPCG(*seed, 1))
	kinds := e.system.compared(e.T)
	for i, r := range e.system.chosen(e.T, random) {
		var pairs []pair
		for _, k := range kinds {
			pairs = append(pairs, e.pastPairs(random, k, r)...)
		}
		e.all(pairs)
		if i%20 == 19 {
			fmt.Printf("compared %d of %d revisions, %d pairs\n", i+1, *revisions, e.pairs)
		}
	}
}

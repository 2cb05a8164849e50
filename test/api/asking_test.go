package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
)

// maxReported bounds how many wrong answers a run shows.
const maxReported = 15

// An exam asks pairs of questions and compares the answers. It is safe for concurrent use.
type exam struct {
	*testing.T
	system  *system
	end     revision
	allowed allowances

	mu     sync.Mutex // protects what follows
	pairs  int
	failed int
}

func newExam(t *testing.T, s *system) *exam {
	return &exam{T: t, system: s, end: s.dated(t, s.end()), allowed: newAllowances(s)}
}

// all asks pairs, some at a time.
func (e *exam) all(pairs []pair) {
	var group errgroup.Group
	group.SetLimit(8)
	for _, p := range pairs {
		group.Go(func() error {
			e.ask(p)
			return nil
		})
	}
	_ = group.Wait() // Failures are those of the test.
}

// ask asks one pair; of a list in pages, page after page.
func (e *exam) ask(p pair) {
	for {
		theirs, ours := e.system.theirs.ask(e.Context(), p.theirs), e.system.ours.ask(e.Context(), p.ours)
		theirNext, ourNext := next(theirs), next(ours)
		e.compare(p, theirs, ours)
		if theirNext == "" || ourNext == "" {
			return
		}
		p.theirs = p.theirs.without("resourceVersion", "resourceVersionMatch").with("continue=" + theirNext)
		p.ours = p.ours.without("resourceVersion", "resourceVersionMatch").with("continue=" + ourNext)
	}
}

// next is the token with which a list goes on.
func next(a answer) string {
	token, _ := at(a.body, "metadata", "continue").(string)
	return token
}

// at follows the names of members.
func at(value any, names ...string) any {
	for _, name := range names {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	return value
}

func (e *exam) compare(p pair, theirs, ours answer) {
	e.judge(p, e.differences(p, theirs, ours))
}

func (e *exam) judge(p pair, found []difference) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pairs++
	if len(found) == 0 {
		return
	}
	if e.failed++; e.failed <= maxReported {
		e.Errorf("%s\n%s", p, report(found))
	}
}

func (e *exam) differences(p pair, theirs, ours answer) []difference {
	if theirs.err != nil || ours.err != nil {
		return []difference{{path: "no answer", theirs: fmt.Sprint(theirs.err), ours: fmt.Sprint(ours.err)}}
	}
	if p.one != "" {
		theirs = only(theirs, p)
	}
	e.allowed.mend(p, &theirs, &ours)
	return differences("", shown(theirs), shown(ours))
}

func shown(a answer) map[string]any {
	return map[string]any{"code": strconv.Itoa(a.code), "type": a.mediaType, "body": a.body}
}

// only is the answer to a GET, made of a list that has one object or none.
func only(list answer, p pair) answer {
	if list.code != http.StatusOK {
		return list
	}
	items, _ := at(list.body, "items").([]any)
	if len(items) == 1 {
		object := items[0].(map[string]any)
		if object["kind"] == nil { // Lists of built-in kinds omit it.
			object["kind"], object["apiVersion"] = p.kind.name, p.kind.GroupVersion().String()
		}
		list.body = object
		return list
	}
	resource := p.kind.GroupResource().String()
	list.code = http.StatusNotFound
	list.body = map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "message": fmt.Sprintf("%s %q not found", resource, p.one),
		"reason": "NotFound", "code": jsonNumber(http.StatusNotFound), "details": details(p),
	}
	return list
}

func details(p pair) map[string]any {
	d := map[string]any{"name": p.one, "kind": p.kind.Resource}
	if p.kind.Group != "" {
		d["group"] = p.kind.Group
	}
	return d
}

// choose gives one of several.
func choose[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

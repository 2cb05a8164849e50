package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/replay"
	"github.com/kuberewind/kuberewind/internal/scenetest"
	"github.com/kuberewind/kuberewind/internal/serve/page"
	"github.com/kuberewind/kuberewind/internal/timelinetest"
	"github.com/kuberewind/kuberewind/timeline"
)

var (
	seed    = flag.Uint64("seed", 0, "begin the random windows of TestThePageDrawsWhatSQLCounts with this seed, which a failure prints; 0 is any")
	windows = flag.Int("windows", 200, "how many random windows TestThePageDrawsWhatSQLCounts compares with SQL")
)

// In random windows, the drawn marks are those that SQL counts and the command line prints. With -seed, the windows are those
// of an earlier run.
func TestThePageDrawsWhatSQLCounts(t *testing.T) {
	if !*all {
		t.Skip("it takes minutes: make test-web runs it")
	}
	chromium := need(t)
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", *seed)
	scene, seven, codes := pgtest.New(t, scenetest.Record), newDays(t, rand.New(rand.NewPCG(*seed, 0))), page.NewCodes()
	served := []timeline.Cluster{cluster(open(t, scene), ""), cluster(open(t, seven.DB), "")}
	b := &oracle{
		t: t, days: seven, met: map[string]bool{}, drawn: map[int]*view{},
		records: []*judged{
			newJudged(t, scene, served[0].UID, timelinetest.OfScene()),
			newJudged(t, seven.DB, served[1].UID, wordsOfDays(), seven.lost),
		},
	}
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	drive(t, chromium, []string{"truth/truth.test.mjs"},
		"KUBEREWIND_PAGE="+servePage(t, codes, time.Minute, served...), "KUBEREWIND_HASTY="+servePage(t, codes, time.Nanosecond, served...), "KUBEREWIND_CODES="+links(t, codes.New),
		"KUBEREWIND_JUDGE="+b.serve(t), fmt.Sprintf("KUBEREWIND_SEED=%d", *seed), fmt.Sprintf("KUBEREWIND_WINDOWS=%d", *windows))
	require.Subset(t, keys(b.met), documentedKinds(t), "each kind of docs/timeline.md was drawn at least once")
}

// documentedKinds are the kinds of the table in docs/timeline.md.
func documentedKinds(t *testing.T) (kinds []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/timeline.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(text), "| kind | meaning |\n|---|---|\n")
	require.True(t, ok)
	for line := range strings.Lines(table) {
		kind, ok := strings.CutPrefix(line, "| `")
		if !ok {
			break
		}
		kind, _, _ = strings.Cut(kind, "`")
		kinds = append(kinds, kind)
	}
	require.NotEmpty(t, kinds)
	return kinds
}

func keys(of map[string]bool) (all []string) {
	for key := range of {
		all = append(all, key)
	}
	return all
}

// An oracle answers Node's question what to look at, and gets the drawn marks. One request comes after the other.
type oracle struct {
	t       *testing.T
	records []*judged
	days    *days
	met     map[string]bool // kinds of what is not known, that were drawn as such
	drawn   map[int]*view
}

// A question is what Node sends.
type question struct {
	N     int      `json:"n"`
	Shown *shown   `json:"shown"`
	Args  []string `json:"args"` // of replay
}

// serve gives the address at which Node asks.
func (b *oracle) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	for path, answer := range map[string]func(context.Context, *question) (any, error){
		"/view": b.view, "/judge": b.judge, "/version": b.version, "/pair": b.pair, "/replay": b.replay, "/known": b.known, "/met": b.meet,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			var q question
			err := json.NewDecoder(r.Body).Decode(&q)
			var given any
			if err == nil {
				given, err = answer(r.Context(), &q)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_ = json.NewEncoder(w).Encode(given) // Node says so if it got nothing.
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// of gives the record and the random numbers of a question.
func (b *oracle) of(q *question, what uint64) (*judged, *rand.Rand) {
	return b.records[q.N%len(b.records)], rand.New(rand.NewPCG(*seed+what, uint64(q.N)))
}

func (b *oracle) view(_ context.Context, q *question) (any, error) {
	j, random := b.of(q, 1)
	b.drawn[q.N] = j.view(random)
	return b.drawn[q.N], nil
}

func (b *oracle) judge(ctx context.Context, q *question) (any, error) {
	j, _ := b.of(q, 1)
	_, _ = b.meet(ctx, q)
	wrong, err := j.judge(ctx, b.drawn[q.N], q.Shown)
	if wrong == nil {
		wrong = []string{}
	}
	return wrong, err
}

// meet notes which kinds were drawn.
func (b *oracle) meet(_ context.Context, q *question) (any, error) {
	for _, h := range q.Shown.Hatched {
		b.met[h.Kind] = true
	}
	return nil, nil
}

// replay runs a command on a record: what it prints, and on which stream.
func (b *oracle) replay(ctx context.Context, q *question) (any, error) {
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	j, _ := b.of(q, 0)
	code := replay.Execute(ctx, "replay", append(q.Args, "--database", j.url), streams)
	return map[string]any{"code": code, "out": out.String(), "err": errOut.String()}, nil
}

// version is a random version that is there: where the page shows it.
func (b *oracle) version(ctx context.Context, q *question) (any, error) {
	j, random := b.of(q, 2)
	seq, err := j.seq(ctx, random)
	if err != nil {
		return nil, err
	}
	var uid, resource, namespace, name string
	err = j.db.QueryRow(ctx, `
		SELECT uid, concat_ws('.', resource, nullif(api_group, '')), namespace, name, seq FROM kuberewind.deltas
		WHERE type <> 'Deleted' AND name <> 'hurt' AND seq <= $1 ORDER BY seq DESC LIMIT 1`, seq).Scan(&uid, &resource, &namespace, &name, &seq)
	args := []string{"get", resource, name, "-n", namespace, "-o", "yaml", "--at", fmt.Sprint("seq:", seq)}
	return map[string]any{"cluster": j.uid, "uid": uid, "seq": seq, "args": args}, err
}

// seq is a random one that is on record and can be read: the record is whole from the last stretch on that was pruned at its begin.
func (j *judged) seq(ctx context.Context, random *rand.Rand) (seq int64, err error) {
	err = j.db.QueryRow(ctx, `
		WITH whole AS (
			SELECT seq FROM kuberewind.deltas
			WHERE observed_at > coalesce((SELECT max(to_at) FROM kuberewind.coverage WHERE cause = 'pruned'), '-infinity') AND observed_at > (SELECT min(observed_at) FROM kuberewind.deltas)
		)
		SELECT seq FROM whole ORDER BY seq OFFSET floor($1::float * (SELECT count(*) FROM whole)) LIMIT 1`, random.Float64()).Scan(&seq)
	return seq, err
}

// narrowed has filters of the page, and the words of replay diff that select the same objects.
var narrowed = []struct {
	page  string
	words []string
}{
	{"", []string{"-A"}},
	{"&in=shop", []string{"-n", "shop"}},
	{"&of=pods", []string{"pods", "-A"}},
	{"&in=shop&of=deployments.apps", []string{"deployments.apps", "-n", "shop"}},
}

// pair is two random instants.
func (b *oracle) pair(ctx context.Context, q *question) (any, error) {
	j, random := b.of(q, 3)
	by := narrowed[random.IntN(len(narrowed))]
	one, err := j.seq(ctx, random)
	if err != nil {
		return nil, err
	}
	other, err := j.seq(ctx, random)
	args := append([]string{"diff", "--from", fmt.Sprint("seq:", one), "--to", fmt.Sprint("seq:", other)}, by.words...)
	return map[string]any{"cluster": j.uid, "filter": by.page, "a": one, "b": other, "args": args}, err
}

// known says where to find what random windows do not show.
func (b *oracle) known(context.Context, *question) (any, error) {
	return map[string]any{
		"cluster": b.records[1].uid, "label": hurtLabel, "hurt": b.days.hurt.UnixMilli(), "from": b.records[1].first, "to": b.records[1].last + 1,
	}, nil
}

package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// A campaign is one run of rounds of faults against one world.
type campaign struct {
	*world
	ledger     *ledger
	faults     []fault
	refused    map[string]string
	injected   map[string]int
	started    time.Time
	rounds     int
	verdict    verdict
	incomplete error   // why the record was not complete after the last round
	idle       []usage // usage after each round that ended with all streams followed
	late       int     // the last rounds after which streams were not followed again
	behind     int     // the most streams that were not followed after another round
}

// TestCampaign checks I1 to I4 and I7: under all faults, each revision of etcd is one row, or inside a gap that was unavoidable.
func TestCampaign(t *testing.T) {
	random := rand.New(rand.NewPCG(*seed, 0))
	t.Logf("seed %d", *seed)
	c := &campaign{injected: map[string]int{}, refused: map[string]string{}, started: time.Now()}
	for _, f := range chosen(t) {
		if f.refused != nil {
			c.refused[f.kind] = f.refused()
		}
		if c.refused[f.kind] == "" {
			c.faults = append(c.faults, f)
		}
	}
	c.world = newWorld(t, random, c.faults)
	c.ledger = c.begin(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer c.load.wait.Wait()
	defer cancel()
	defer func() { c.report(t) }()
	c.load.run(ctx)
	for c.goesOn() {
		if !c.round(t) {
			break
		}
	}
	c.require(t)
}

// mostLate is how many rounds in a row may end before all streams are followed again.
const mostLate = 5

// goesOn reports whether there is another round. Streams that are still catching up may yet get a gap, which only another round judges.
func (c *campaign) goesOn() bool {
	least := max(*rounds, 1)
	if *rounds == 0 {
		least = len(c.faults)
	}
	return c.rounds < least || c.late > 0 && c.late < mostLate || time.Since(c.started) < *lasting || c.ledger.writes < *revisions
}

// next returns the faults of the next round: first each kind alone, then a few at once.
func (c *campaign) next() []fault {
	if c.rounds < len(c.faults) {
		return c.faults[c.rounds : c.rounds+1]
	}
	var together []fault
	for range 1 + c.random.IntN(3) {
		f := c.faults[c.random.IntN(len(c.faults))]
		if !slices.ContainsFunc(together, func(other fault) bool { return other.part == f.part || other.alone || f.alone }) {
			together = append(together, f)
		}
	}
	place := func(f fault) int {
		return slices.IndexFunc(faults, func(other fault) bool { return other.kind == f.kind })
	}
	slices.SortFunc(together, func(a, b fault) int { return place(a) - place(b) })
	return together
}

// round injects faults, heals, and compares. It reports whether the record is complete.
func (c *campaign) round(t *testing.T) bool {
	t.Helper()
	together := c.next()
	c.rounds++
	var names string
	for _, f := range together {
		names += " " + f.kind
		c.injected[f.kind]++
	}
	t.Logf("round %d:%s", c.rounds, names)
	c.hold(t, c.between(0.5, 1.5))
	began := time.Now()
	c.inject(t, together)
	lasted := time.Since(began)
	c.oracle.faultsOver()
	c.hold(t, c.between(0.3, 1))
	resume := c.load.pause()
	defer resume()
	quiet := time.Now()
	c.verdict, c.incomplete = c.ledger.awaitComplete(t.Context(), c.world, c.allows(together))
	if c.incomplete == nil {
		c.incomplete = c.awaitPresent(t.Context())
	}
	over := time.Since(quiet)
	u, behind := c.usage(t)
	if behind == 0 {
		c.idle = append(c.idle, u)
	}
	if c.late++; behind == 0 {
		c.late = 0
	}
	c.behind = max(c.behind, behind)
	t.Logf("it lasted %.1f s, the record was complete %.1f s later; after %.1f s %d streams were still catching up: %d revisions, %d rows, %d in named gaps, %d missing, %d served to no recorder",
		lasted.Seconds(), over.Seconds(), time.Since(quiet).Seconds(), behind, c.ledger.writes, c.ledger.rows, len(c.verdict.owners), len(c.verdict.missing), c.ledger.unserved)
	return c.whole()
}

// allows says what a round with these faults allows.
func (c *campaign) allows(together []fault) allowances {
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(together, func(f fault) bool {
			return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(f.kind, prefix) })
		})
	}
	// away is set if the recorder was away, or began the round without a watch of each stream.
	away := c.late > 0 || has("recorder-", "etcd-restored-unseen", "etcd-restored-killed", "etcd-restored-unrecorded")
	// cut is set if the recorder was cut off from the API server, or if another recorder, with another spool, may have followed it.
	cut := has("compacted-beyond", "spool-and-kill", "two-recorders", "api-refused", "api-half-open", "rbac-withdrawn")
	return allowances{restart: away || has("etcd-restored-for-one", "etcd-restored-bumped", "etcd-overtaken-killed"), unserved: away || cut}
}

// inject starts the faults one inside the other.
func (c *campaign) inject(t *testing.T, together []fault) {
	t.Helper()
	if len(together) == 0 {
		c.hold(t, c.between(0, 1))
		return
	}
	together[0].do(t, c.world, func() { c.inject(t, together[1:]) })
}

func (c *campaign) whole() bool {
	l := c.ledger
	needless, _ := c.needless()
	return c.incomplete == nil && l.twice == 0 && l.differing == 0 && len(c.verdict.mistaken)+len(c.verdict.passed) == 0 &&
		len(l.faults) == 0 && len(needless) == 0
}

// needless returns the closed gaps that were needless, and the number of those that no recorder could afford to avoid.
func (c *campaign) needless() (found []gap, unaffordable int) {
	log := sync.OnceValue(c.recorders.log)
	for _, g := range c.verdict.gaps {
		if !c.ledger.needless(g) {
			continue
		}
		if c.oracle.restoredWithin(g.toAt.Add(-positionsMove), g.toAt) && g.unaffordable(log()) {
			unaffordable++
		} else {
			found = append(found, g)
		}
	}
	return found, unaffordable
}

// require fails the test if the record is wrong, and shows the details that are needed to find the cause.
func (c *campaign) require(t *testing.T) {
	t.Helper()
	defer c.keepLogs(t)
	defer c.load.pause()()
	if c.late >= mostLate {
		t.Errorf("streams were not followed again after %d rounds", c.late)
	}
	if c.incomplete != nil {
		t.Errorf("the record is not whole after %s: %v", *patience, c.incomplete)
	}
	for i, s := range c.verdict.missing {
		if i < 20 {
			t.Errorf("missing: %s of %v at revision %d of history %d", s.kind, s.object, s.revision, s.generation)
		}
	}
	for _, g := range c.verdict.open {
		t.Errorf("still open: %s of %s from %d", g.cause, g.resource, g.from)
	}
	needless, _ := c.needless()
	for _, g := range needless {
		t.Errorf("needless: gap %d of %s, %s, %s, revisions %d to %d", g.number, g.resource, g.cause, g.outcome, g.from, g.to)
	}
	for _, x := range c.ledger.strange {
		t.Errorf("etcd never had: seq %d, %s of %v at %s by %s", x.seq, x.kind, x.object, x.text, x.source)
	}
	for i, x := range c.verdict.mistaken {
		if i < 20 {
			t.Errorf("told otherwise than etcd has it, in no gap: seq %d, %s of %v at %s, seen %s", x.seq, x.kind, x.object, x.text, x.observed.Format(time.RFC3339Nano))
		}
	}
	for i, x := range c.verdict.passed {
		if i < 20 {
			t.Errorf("followed by a lower revision, in no gap: seq %d, %s of %v at %s, seen %s", x.seq, x.kind, x.object, x.text, x.observed.Format(time.RFC3339Nano))
		}
	}
	for _, text := range c.ledger.faults {
		t.Error(text)
	}
	for _, code := range c.recorders.unexpected() {
		t.Errorf("a recorder ended with exit code %d", code)
	}
	c.requireNoGrowth(t)
	if !t.Failed() {
		c.requireChain(t)
	}
}

// keepLogs writes the logs of the recorders to a file if the test has failed.
func (c *campaign) keepLogs(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("kuberewind-chaos-%d.log", *seed))
	require.NoError(t, os.WriteFile(path, []byte(c.recorders.log()), 0o600))
	t.Logf("the logs of the recorders are in %s", path)
}

// An idle recorder may have grown by half since the first round, and by the memory that Go's collector has not freed yet.
const grown, room = 1.5, 128 << 20

func (c *campaign) requireNoGrowth(t *testing.T) {
	t.Helper()
	if len(c.idle) == 0 {
		return
	}
	first, last := c.idle[0], c.idle[len(c.idle)-1]
	assert.LessOrEqual(t, last.memory, grown*first.memory+room, "memory")
	assert.LessOrEqual(t, last.goroutines, grown*first.goroutines, "goroutines")
	// The recorder's HTTP client keeps idle connections for 90 seconds.
	recordertest.Eventually(t.Context(), t, fmt.Sprintf("half as many open files again as the %.0f at first", first.files), func() bool {
		if last.files > grown*first.files {
			last, _ = c.usage(t)
		}
		return last.files <= grown*first.files
	})
}

// requireChain runs "replay verify" on the record: chain, folds, digests. It also compares all resources with the cluster.
func (c *campaign) requireChain(t *testing.T) {
	t.Helper()
	kubeconfig, err := c.plane.APIServer.Kubeconfig(recorderUser)
	require.NoError(t, err)
	code, said := recordertest.RunProgram(t, "replay", "verify", "--database", c.database.URL(), "--against-cluster", "--kubeconfig", kubeconfig,
		"--redaction-key-file", c.recorders.keyFile())
	assert.Zero(t, code, "replay verify: %s", said)
}

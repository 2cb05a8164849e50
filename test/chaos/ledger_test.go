package chaos_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/controlplane"
)

// A ledger compares the record with the oracle. Each write is exactly one row, or inside a gap.
type ledger struct {
	oracle *oracle
	api    *wire // from the recorders to the API server
	from   int64 // each revision after this one is expected
	seq    int64 // the record has been read up to here

	expected map[place][]*state // several states only after a rollback
	open     map[*state]bool    // not found in the record yet
	strange  map[int64]row      // rows by seq whose write the oracle has not read
	mistaken []row              // rows that only a gap of a rollback excuses: of a lost write, or of a write with another previous object
	passed   []row              // rows of a watch, each followed by a lower revision: it was lost, so only a gap of a rollback excuses it
	owners   map[*state]int64   // verdict.owners of the last round whose record became complete
	judged   map[int64]bool     // closed gaps by number: whether they were needless
	newest   map[int]int64      // the newest revision on record, by generation
	watched  map[string]row     // the last row of a watch, by resource

	tally
	faults []string // descriptions of the first few
}

// tally counts what the ledger has read and found.
type tally struct {
	writes, rows, twice, differing int
	unserved                       int // lost writes that no recorder could know of
}

// place is the place of a version in the history.
type place struct {
	object
	revision int64
}

// state is a write, and how it was recorded.
type state struct {
	write
	seq     int64 // seq of its row, 0 if there is none
	ended   int64 // seq of the row that ends the object that this write replaced
	excused bool  // no recorder could know of it
}

// row is one delta of the record.
type row struct {
	object
	seq           int64
	kind, source  string
	version, text string // API version; resource version
	revision      int64  // the resource version as a number, if inOrder has read it
	digest        []byte
	observed      time.Time
}

// gap is a gap on record.
type gap struct {
	number          int64
	group, resource string
	cause, outcome  string
	from, to        int64 // to is 0 while it is open
	fromAt, toAt    time.Time
	missed          int
	first           bool // it is the first gap of its resource, up to the first list
	restored        bool // etcd was put back within it
	divided         bool // the next gap of the resource is one of a restore
}

func newLedger(o *oracle, api *wire) *ledger {
	return &ledger{oracle: o, api: api, from: o.read, expected: map[place][]*state{}, open: map[*state]bool{}, strange: map[int64]row{}, judged: map[int64]bool{}, newest: map[int]int64{}, watched: map[string]row{}}
}

// update reads the new writes of etcd and the new rows of the record.
func (l *ledger) update(ctx context.Context, db pgx.Tx) error {
	for _, w := range l.oracle.take() {
		s := &state{write: *w}
		at := place{w.object, w.revision}
		l.expected[at] = append(l.expected[at], s)
		l.open[s] = true
		l.writes++
	}
	rows, err := db.Query(ctx, `SELECT seq, type, source, version, resource, namespace, name, resource_version, digest, observed_at
		FROM kuberewind.deltas WHERE seq > $1 ORDER BY seq`, l.seq)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (x row, err error) {
		err = r.Scan(&x.seq, &x.kind, &x.source, &x.version, &x.resource, &x.namespace, &x.name, &x.text, &x.digest, &x.observed)
		return x, err
	})
	if err != nil {
		return err
	}
	for _, seq := range slices.Sorted(maps.Keys(l.strange)) {
		x := l.strange[seq]
		delete(l.strange, seq)
		l.enter(x)
	}
	for _, x := range found {
		if x.seq != l.seq+1 {
			l.fault("the numbers of deltas have a hole: %d comes after %d", x.seq, l.seq)
		}
		l.seq = x.seq
		l.rows++
		l.inOrder(x)
		l.enter(x)
	}
	return nil
}

// inOrder checks that the rows of a watch are in the order of their revisions (I4). Only a rollback may divide them.
func (l *ledger) inOrder(x row) {
	revision, err := strconv.ParseInt(x.text, 10, 64)
	if x.source != "watch" || err != nil {
		return
	}
	x.revision = revision
	last, known := l.watched[x.resource]
	l.watched[x.resource] = x
	if known && revision < last.revision {
		l.passed = append(l.passed, last)
	}
}

// enter finds the write of a row. Keyframes and inferred deletes have none.
func (l *ledger) enter(x row) {
	revision, err := strconv.ParseInt(x.text, 10, 64)
	if x.source != "watch" && x.source != "relist" || err != nil || revision <= l.from {
		return
	}
	states := l.expected[place{x.object, revision}]
	if len(states) == 0 {
		l.strange[x.seq] = x
		return
	}
	var known, ended, mistaken *state
	for _, s := range states {
		expected := s.kind
		if s.ended != 0 {
			expected = "Added"
		}
		fits := x.kind == expected || x.source == "relist" && s.kind != "Deleted"
		switch {
		case fits && l.equal(s, x) && (known == nil || known.seq != 0 || s.seq == 0 && s.after.Before(x.observed)):
			known = s // two histories may have equal objects in one place; the row is of the newest that existed when it was observed
		case s.seq == 0 && s.ended == 0 && s.replaced != nil && x.kind == "Deleted" && l.same(*s.replaced, s, x):
			ended = s
		case s.seq == 0 && s.mistakenFor(x, l.equal(s, x)):
			mistaken = s
		}
	}
	if found := cmp.Or(known, ended, mistaken); found != nil {
		l.newest[found.generation] = max(l.newest[found.generation], revision)
	}
	switch {
	case known == nil && ended != nil:
		ended.ended = x.seq
	case known == nil && mistaken != nil:
		mistaken.seq = x.seq
		delete(l.open, mistaken)
		l.mistaken = append(l.mistaken, x)
	case known == nil:
		l.differing++
		l.fault("seq %d, %s of %v at %d by %s, differs from what etcd has: %s", x.seq, x.kind, x.object, revision, x.source, states[0].kind)
	case known.seq != 0 && x.source == "relist" && known.generation < l.oracle.generation && !l.oracle.lost(known.generation, revision):
		known.generation = l.oracle.generation // the restored history has it, too
	case known.seq != 0:
		l.twice++
		l.fault("seq %d, %s of %v at %d by %s, is on record already: seq %d", x.seq, x.kind, x.object, revision, x.source, known.seq)
	case known.excused:
		l.fault("seq %d, %s of %v at %d by %s, was counted as served to no recorder", x.seq, x.kind, x.object, revision, x.source)
	default:
		known.seq = x.seq
		delete(l.open, known)
		if l.oracle.lostAt(known.generation, revision, x.observed) {
			l.mistaken = append(l.mistaken, x)
		}
	}
}

// equal compares the contents if that is possible. It is not for Secrets, whose values are hashed, and for converted API versions.
func (l *ledger) equal(s *state, x row) bool { return l.same(s.digest, s, x) }

func (l *ledger) same(digest [16]byte, s *state, x row) bool {
	return x.resource == "secrets" || !strings.HasSuffix("/"+s.version, "/"+x.version) || [16]byte(x.digest) == digest
}

func (l *ledger) fault(format string, args ...any) {
	if len(l.faults) < 20 {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// firstList is the cause of a gap that begins with the record of a resource.
const firstList = "first_list"

// gaps reads the gaps on record.
func (l *ledger) gaps(ctx context.Context, db pgx.Tx) ([]gap, error) {
	rows, err := db.Query(ctx, `SELECT gap, api_group, resource, cause, coalesce(outcome, ''), coalesce(from_rv, '0'), coalesce(to_rv, '0'),
			coalesce(from_at, 'epoch'), coalesce(to_at, now())
		FROM kuberewind.gaps ORDER BY gap`)
	if err != nil {
		return nil, err
	}
	listed := map[[2]string]bool{}
	gaps, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (g gap, err error) {
		var from, to string
		if err = r.Scan(&g.number, &g.group, &g.resource, &g.cause, &g.outcome, &from, &to, &g.fromAt, &g.toAt); err != nil {
			return g, err
		}
		g.from, err = strconv.ParseInt(from, 10, 64)
		if err == nil {
			g.to, err = strconv.ParseInt(to, 10, 64)
		}
		g.first = g.cause == firstList && !listed[g.stream()]
		listed[g.stream()] = true
		g.restored = l.oracle.restoredWithin(g.fromAt, g.toAt)
		return g, err
	})
	next := map[[2]string]*gap{}
	for i := range slices.Backward(gaps) {
		g := &gaps[i]
		g.divided = next[g.stream()] != nil && next[g.stream()].ofRestore()
		next[g.stream()] = g
	}
	return gaps, err
}

// stream returns the API group and the resource.
func (g *gap) stream() [2]string { return [2]string{g.group, g.resource} }

// covers reports whether a gap covers a write of this generation or of the previous one. A gap that ended with nothing missed
// covers nothing, and no gap covers a write that came after its end.
func (g *gap) covers(s *state, generation int) bool {
	if g.resource != s.resource || g.outcome == "resumed" || g.endedBefore(s) || g.cause == firstList && !g.first {
		return false
	}
	if g.ofRestore() {
		return s.generation < generation && s.revision > g.from || s.generation == generation && (g.to == 0 || s.revision <= g.to)
	}
	return s.revision > g.from && (g.to == 0 || s.revision <= g.to)
}

// ofRestore reports whether the gap says that etcd was put back, and it was.
func (g *gap) ofRestore() bool { return g.cause == "history_reversed" && g.restored }

// endedBefore reports whether a gap ended before a write. After a restore, revisions begin again at lower numbers, so they alone do not
// show that.
func (g *gap) endedBefore(s *state) bool { return g.toAt.Before(s.after) }

// mistakenFor reports whether a write is recorded as another type, or as the end of an earlier object. An API server that
// keeps running while its etcd is restored uses the objects in its cache.
func (s *state) mistakenFor(x row, equal bool) bool {
	ends := s.kind == "Deleted"
	return x.source == "watch" && ends == (x.kind == "Deleted") && ends != equal
}

// excuses reports whether a mistaken row is allowed: it was written before the recorder had noticed the rollback, and a gap covers it.
func (g *gap) excuses(x row) bool {
	return g.resource == x.resource && g.cause == "history_reversed" && !x.observed.Before(g.fromAt) && !x.observed.After(g.toAt)
}

// verdict is the result of a comparison.
type verdict struct {
	mistaken []row            // rows that no gap excuses
	passed   []row            // rows that a lower revision follows, and no gap excuses
	missing  []*state         // in no gap
	unserved []*state         // in no gap, because no recorder could know of them
	owners   map[*state]int64 // the number of the gap, for each write without a row
	open     []gap            // open gaps
	gaps     []gap            // closed gaps, with the number of missed writes
}

// allowances are the faults of the record that a round excuses. Any other round must not have them.
type allowances struct {
	// restart: the API server may refuse a watch shortly before a rollback is found, or a recorder starts after the restore. Then
	// the recorder cannot trust the server's caches without a restart.
	restart bool
	// unserved: the recorder may be served no write of a lost history, because it follows nothing meanwhile.
	unserved bool
}

// unservedToAll reports whether a restore has undone a write, no write that it has undone is on record, and no gap says that there was
// a restore. Then no recorder was served a version that could show it. A bookmark could, too: the ledger does not see bookmarks.
func (l *ledger) unservedToAll(s *state, gaps []gap) bool {
	found := slices.ContainsFunc(gaps, func(g gap) bool { return g.cause == "history_reversed" && !g.endedBefore(s) })
	return !found && l.oracle.lost(s.generation, s.revision) && !l.oracle.lost(s.generation, l.newest[s.generation])
}

func (l *ledger) judge(ctx context.Context, db pgx.Tx, may allowances) (v verdict, err error) {
	gaps, err := l.gaps(ctx, db)
	if err != nil {
		return v, err
	}
	v.owners = map[*state]int64{}
	for s := range l.open {
		owner := slices.IndexFunc(gaps, func(g gap) bool {
			if number, known := l.owners[s]; known {
				return g.number == number
			}
			return g.covers(s, l.oracle.generation)
		})
		switch {
		case owner >= 0:
			gaps[owner].missed++
			v.owners[s] = gaps[owner].number
		case may.unserved && l.unservedToAll(s, gaps):
			v.unserved = append(v.unserved, s)
		default:
			v.missing = append(v.missing, s)
		}
	}
	for _, g := range gaps {
		switch {
		case g.first:
		case g.outcome == "":
			v.open = append(v.open, g)
		default:
			v.gaps = append(v.gaps, g)
		}
	}
	excused := func(x row) bool {
		return slices.ContainsFunc(gaps, func(g gap) bool { return g.excuses(x) })
	}
	v.mistaken = slices.DeleteFunc(slices.Clone(l.mistaken), excused)
	v.passed = slices.DeleteFunc(slices.Clone(l.passed), excused)
	slices.SortFunc(v.missing, func(a, b *state) int { return int(a.revision - b.revision) })
	return v, nil
}

// needless reports whether a closed gap was needless: the history could still have been read at its end.
func (l *ledger) needless(g gap) bool {
	verdict, known := l.judged[g.number]
	if !known {
		// A rollback closes an open gap where that began. So nothing lies in it.
		divided := g.divided && g.outcome == "relisted" && g.from == g.to
		excused := g.outcome == "resumed" || divided || g.ofRestore() || l.ended(g)
		verdict = g.cause == firstList || !excused && !l.oracle.forgotten(g.from, g.toAt)
		l.judged[g.number] = verdict
	}
	return verdict
}

// positionsMove is the time in which bookmarks move the positions of all streams, even if the API server is restarted meanwhile. After a
// restore, a resource may be listed later than the others. Until then, each of the others has to look at the revisions between the
// two lists.
const positionsMove = 3 * time.Minute

// unaffordable reports whether the log says that the gap opened because the recoveries had used up their requests. The recovery may
// have begun after the gap, which begins at the position on record.
func (g *gap) unaffordable(log string) bool {
	for line := range strings.Lines(log) {
		var l struct {
			Group, Resource string
			From            int64
			Reached         int64 `json:",string"`
		}
		if !strings.Contains(line, "used up their requests") || json.Unmarshal([]byte(line), &l) != nil || l.Group != g.group || l.Resource != g.resource {
			continue
		}
		if at := max(l.From, l.Reached); at >= g.from && at < g.to {
			return true
		}
	}
	return false
}

// ended reports whether a resource ended within its gap, and no recorder was connected all the time since its definition was
// deleted. After that deletion, only a watch that is already open gets the history of the resource.
func (l *ledger) ended(g gap) bool {
	if g.resource != widgets.Resource || g.cause != "not_found" && g.cause != "forbidden" {
		return false
	}
	definition := object{resource: "customresourcedefinitions", name: widgetsDefinition}
	for at, states := range l.expected {
		within := at.object == definition && at.revision > g.from && at.revision <= g.to
		if within && slices.ContainsFunc(states, func(s *state) bool { return s.kind == "Deleted" && !l.api.lasted(s.after, g.toAt) }) {
			return true
		}
	}
	return false
}

// untrustedFor is how long the operator waits for a list that is trusted, before a restart of the API server. A recorder that can
// show that the watch caches are new needs a fraction of it. It cannot show that for a stream whose last watch was refused: then
// the log says to restart the API server. A restart helps after the recorder has checked the old cache once.
const untrustedFor = 30 * time.Second

// awaitComplete waits until each write up to the current revision is on record or in a gap, and no gap is open. If that takes longer
// than -patience, the error says what is missing. If the gap of a rollback stays open, awaitComplete restarts the API
// server, but only if the round allows it, and if the recorder's log has asked for that meanwhile.
func (l *ledger) awaitComplete(ctx context.Context, w *world, may allowances) (v verdict, err error) {
	ctx, cancel := context.WithTimeout(ctx, *patience)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	asked := w.restartRequests()
	untrusted := time.NewTicker(untrustedFor)
	defer untrusted.Stop()
	for {
		_, err = l.oracle.catchUp(ctx)
		if err == nil {
			err = w.query(ctx, func(ctx context.Context, db pgx.Tx) error {
				if err := l.update(ctx, db); err != nil {
					return err
				}
				now, err := l.judge(ctx, db, may)
				if err == nil {
					v = now
				}
				return err
			})
		}
		if err == nil && len(l.strange)+len(v.missing)+len(v.open)+len(v.mistaken)+len(v.passed) == 0 {
			l.owners = v.owners
			for _, s := range v.unserved {
				s.excused = true
				delete(l.open, s)
			}
			l.unserved += len(v.unserved)
			return v, nil
		}
		select {
		case <-ticker.C:
		case <-untrusted.C:
			if may.restart && asked() && slices.ContainsFunc(v.open, func(g gap) bool { return g.cause == "history_reversed" }) {
				w.restarts++
				if err := w.plane.APIServer.Restart(ctx); err != nil {
					return v, err
				}
			}
		case <-ctx.Done():
			return v, errors.Join(err, context.Cause(ctx))
		}
	}
}

// An API server with a stale cache has replaced the object in etcd by an object of the lost history.
func TestAnUpdateThatReplacesTheUIDIsADeleteAndAnAdd(t *testing.T) {
	const text = `{"apiVersion":"example.kuberewind.dev/v1","kind":"Widget","metadata":{"name":"w","namespace":"default","uid":%q}}`
	w, err := new(oracle).parse(controlplane.Revision{
		Key: "/registry/example.kuberewind.dev/widgets/default/w", Rev: 7, Kind: controlplane.Update,
		Previous: fmt.Appendf(nil, text, "a"), Value: fmt.Appendf(nil, text, "b"),
	})
	require.NoError(t, err)
	type served struct {
		kind   string
		digest [16]byte
	}
	end, beginning, update := served{"Deleted", *w.replaced}, served{"Added", w.digest}, served{"Updated", w.digest}
	for name, c := range map[string]struct {
		rows                    []served
		found, faults, mistaken int
	}{
		"an end and a beginning":           {[]served{end, beginning}, 1, 0, 0},
		"as a watch shows it":              {[]served{update}, 1, 0, 0},
		"an end alone":                     {[]served{end}, 0, 0, 0},
		"a beginning without an end":       {[]served{beginning}, 1, 0, 1},
		"two ends":                         {[]served{end, end, beginning}, 1, 1, 0},
		"two beginnings":                   {[]served{end, beginning, beginning}, 1, 1, 0},
		"an end after the beginning":       {[]served{end, beginning, end}, 1, 1, 0},
		"an end after the update":          {[]served{update, end}, 1, 1, 0},
		"an update after the end":          {[]served{end, update}, 1, 0, 1},
		"the end of what takes its place":  {[]served{{"Deleted", w.digest}}, 0, 1, 0},
		"a beginning of what was replaced": {[]served{end, {"Added", *w.replaced}}, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state{write: *w}
			l := newLedger(new(oracle), nil)
			l.expected[place{w.object, 7}], l.open[s] = []*state{s}, true
			for i, x := range c.rows {
				l.enter(row{seq: int64(i + 1), kind: x.kind, source: "watch", version: "example.kuberewind.dev/v1", object: w.object, text: "7", digest: x.digest[:]})
			}
			require.Len(t, l.faults, c.faults, "%v", l.faults)
			require.Len(t, l.mistaken, c.mistaken)
			require.Len(t, l.open, 1-c.found)
		})
	}
}

func TestOnlyALostWriteMayBeUnserved(t *testing.T) {
	const shared, lost = 10, 12
	for name, c := range map[string]struct {
		generation       int
		revision, newest int64
		unserved         bool
	}{
		"nothing that was lost is on record":             {0, lost, shared, true},
		"nothing at all is on record":                    {0, lost, 0, true},
		"an earlier lost write is on record":             {0, lost, lost - 1, false},
		"a later lost write is on record":                {0, lost, lost + 1, false},
		"both histories have it":                         {0, shared, 0, false},
		"the new history has it, and no restore follows": {1, lost, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(&oracle{generation: 1, forks: []int64{shared}}, nil)
			l.newest[c.generation] = c.newest
			s := &state{write: write{generation: c.generation, revision: c.revision, after: time.Unix(100, 0)}}
			earlier, ofIt := gap{cause: "history_reversed", toAt: time.Unix(99, 0)}, gap{cause: "history_reversed", toAt: time.Unix(101, 0)}
			require.Equal(t, c.unserved, l.unservedToAll(s, []gap{earlier}))
			require.False(t, l.unservedToAll(s, []gap{earlier, ofIt}), "a gap says that there was a restore")
		})
	}
}

func TestAGapCoversNoWriteAfterItsEnd(t *testing.T) {
	lost := &state{write: write{object: object{resource: "pods"}, generation: 1, revision: 20, after: time.Unix(200, 0)}}
	for name, c := range map[string]struct {
		gap    gap
		covers bool
	}{
		"the gap of this restore":           {gap{cause: "history_reversed", outcome: "relisted", from: 15, to: 18, toAt: time.Unix(300, 0), restored: true}, true},
		"the gap of an earlier restore":     {gap{cause: "history_reversed", outcome: "relisted", from: 5, to: 8, toAt: time.Unix(100, 0), restored: true}, false},
		"a gap of equal revisions":          {gap{cause: "expired", outcome: "relisted", from: 15, to: 25, toAt: time.Unix(300, 0)}, true},
		"an earlier gap of equal revisions": {gap{cause: "expired", outcome: "relisted", from: 15, to: 25, toAt: time.Unix(100, 0)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.gap.resource = "pods"
			require.Equal(t, c.covers, c.gap.covers(lost, 2))
		})
	}
}

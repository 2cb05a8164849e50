package history

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
)

func random(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func TestVersionsYieldsEachDeltaWithTheObjectBeforeAndAfter(t *testing.T) {
	b := newBook(t, 2)
	rnd := random(t)
	b.scribble(rnd, 60)
	b.sweep(rnd, 0)
	b.scribble(rnd, 10)
	r := b.record(t)

	n := 0
	last := map[string]string{}
	for v, err := range r.Versions(t.Context(), Query{}) {
		require.NoError(t, err)
		p := &b.pages[n]
		n++
		require.Equal(t, p.seq, v.Seq)
		require.Equal(t, p.stream, v.Stream.ID)
		require.Equal(t, p.kind, v.Type)
		require.Equal(t, p.source, v.Source)
		require.Equal(t, []string{p.thing.Namespace, p.thing.Name, p.thing.UID, p.rv, "v1"}, []string{v.Namespace, v.Name, v.UID, v.RV, v.Version})
		require.Equal(t, p.observed, v.ObservedAt)
		require.Equal(t, string(p.thing.Content), string(v.Doc), "seq %d", v.Seq)
		require.Equal(t, last[v.UID], string(v.Before), "before seq %d", v.Seq)
		require.Equal(t, v.Seq == v.ObjectID, v.Before == nil)
		last[v.UID] = string(v.Doc)
	}
	require.Equal(t, len(b.pages), n)

	// A reading that begins in mid-life knows the earlier version.
	from := int64(len(b.pages) / 2)
	n = int(from - 1)
	for v, err := range r.Versions(t.Context(), Query{FromSeq: from}) {
		require.NoError(t, err)
		require.Equal(t, b.pages[n].seq, v.Seq)
		require.Equal(t, string(b.pages[n].thing.Content), string(v.Doc))
		require.Equal(t, v.Seq == v.ObjectID, v.Before == nil, "before seq %d", v.Seq)
		n++
	}
	require.Equal(t, len(b.pages), n)
}

func TestAQueryBoundsTheDeltas(t *testing.T) {
	b := newBook(t, 2)
	b.scribble(random(t), 60)
	r := b.record(t)
	middle := b.pages[len(b.pages)/2]
	for name, c := range map[string]struct {
		q    Query
		want func(*page) bool
	}{
		"all":       {Query{}, func(*page) bool { return true }},
		"seq":       {Query{FromSeq: 7, ToSeq: 90}, func(p *page) bool { return p.seq >= 7 && p.seq <= 90 }},
		"stream":    {Query{Scope: Scope{Streams: []int32{2}}}, func(p *page) bool { return p.stream == 2 }},
		"namespace": {Query{Scope: Scope{Namespace: "b"}}, func(p *page) bool { return p.thing.Namespace == "b" }},
		"name": {Query{Scope: Scope{Streams: []int32{1}, Namespace: "a", Name: "o3"}}, func(p *page) bool {
			return p.stream == 1 && p.thing.Namespace == "a" && p.thing.Name == "o3"
		}},
		"name in any namespace": {Query{Scope: Scope{Name: "o4"}}, func(p *page) bool { return p.thing.Name == "o4" }},
		"no object":             {Query{Scope: Scope{Name: "absent"}}, func(*page) bool { return false }},
		"uid":                   {Query{UID: middle.thing.UID}, func(p *page) bool { return p.thing.UID == middle.thing.UID }},
		"types":                 {Query{Types: []delta.Type{delta.Deleted}}, func(p *page) bool { return p.kind == delta.Deleted }},
		"from":                  {Query{From: middle.observed}, func(p *page) bool { return !p.observed.Before(middle.observed) }},
		"to":                    {Query{To: middle.observed}, func(p *page) bool { return !p.observed.After(middle.observed) }},
	} {
		t.Run(name, func(t *testing.T) {
			var want, deltas, versions []int64
			for i := range b.pages {
				if c.want(&b.pages[i]) {
					want = append(want, b.pages[i].seq)
				}
			}
			for d, err := range r.Deltas(t.Context(), c.q) {
				require.NoError(t, err)
				deltas = append(deltas, d.Seq)
			}
			for v, err := range r.Versions(t.Context(), c.q) {
				require.NoError(t, err)
				require.Equal(t, string(b.pages[v.Seq-1].thing.Content), string(v.Doc))
				versions = append(versions, v.Seq)
			}
			require.Equal(t, want, deltas)
			require.Equal(t, want, versions)
		})
	}
}

func TestRebuildReturnsTheClusterAtAnySeq(t *testing.T) {
	b := newBook(t, 3)
	rnd := random(t)
	c := b.checkpointer(t, checkpoint.Options{})
	for range 4 {
		b.scribble(rnd, 15)
		b.sweep(rnd, rnd.IntN(3))
		_, err := c.MakeOne(t.Context())
		require.NoError(t, err)
	}
	b.scribble(rnd, 10)
	r := b.record(t)
	used := 0
	for range 25 {
		seq := 1 + rnd.Int64N(int64(len(b.pages)))
		p := resolved(t, r, AtSeq(seq), Scope{})
		want := b.liveAt(bySeq(seq))
		plain, stats := rebuilt(t, r, p, Scope{}, RebuildOptions{NoCheckpoint: true})
		require.Equal(t, want, plain, "seq %d from its deltas alone", seq)
		require.Zero(t, stats.Checkpoint)
		quick, stats := rebuilt(t, r, p, Scope{}, RebuildOptions{})
		require.Equal(t, want, quick, "seq %d from checkpoint %d", seq, stats.Checkpoint)
		if stats.Checkpoint > 0 {
			used++
		}
		for _, scope := range []Scope{
			{Streams: []int32{2}}, {Namespace: "b"}, {Streams: []int32{1, 3}, Namespace: "c"}, {Streams: []int32{1}, Namespace: "a", Name: "o1"}, {Streams: []int32{}},
		} {
			want := b.liveAt(func(p *page) bool {
				in := scope.Streams == nil
				for _, id := range scope.Streams {
					in = in || id == p.stream
				}
				return in && p.seq <= seq && (scope.Namespace == "" || scope.Namespace == p.thing.Namespace) && (scope.Name == "" || scope.Name == p.thing.Name)
			})
			got, _ := rebuilt(t, r, p, scope, RebuildOptions{})
			require.Equal(t, want, got, "seq %d in %v", seq, scope)
		}
	}
	require.Positive(t, used)
}

func TestRebuildReturnsTheClusterAtAnyTime(t *testing.T) {
	b := newBook(t, 2)
	rnd := random(t)
	b.scribble(rnd, 40)
	r := b.record(t)
	first := b.pages[0].observed
	for range 30 {
		at := first.Add(time.Duration(rnd.Int64N(int64(b.Now.Sub(first)))))
		if rnd.IntN(3) == 0 {
			at = b.pages[rnd.IntN(len(b.pages))].observed // an instant includes its own moment
		}
		p := resolved(t, r, At(at), Scope{})
		got, _ := rebuilt(t, r, p, Scope{}, RebuildOptions{})
		require.Equal(t, b.liveAt(func(p *page) bool { return !p.observed.After(at) }), got, "at %s", at)
		require.Equal(t, at, p.Time)
	}
	_, err := r.Resolve(t.Context(), At(first.Add(-time.Microsecond)), Scope{})
	require.ErrorIs(t, err, ErrBeforeRecord)
	require.ErrorContains(t, err, first.Format(time.RFC3339))
	p := resolved(t, r, At(b.Now.AddDate(1, 0, 0)), Scope{})
	require.Equal(t, []NoteKind{NoteAfterEnd}, kinds(p.Notes))
	require.Equal(t, int64(len(b.pages)), p.Seq)
	p = resolved(t, r, AtSeq(int64(len(b.pages))+5), Scope{})
	require.Equal(t, []NoteKind{NoteAfterEnd}, kinds(p.Notes))
}

func TestRebuildReturnsTheClusterAtAnyResourceVersion(t *testing.T) {
	b := newBook(t, 2)
	rnd := random(t)
	c := b.checkpointer(t, checkpoint.Options{})
	for i := range 3 {
		b.scribble(rnd, 12)
		if i > 0 {
			_, err := c.MakeOne(t.Context())
			require.NoError(t, err)
		}
	}
	r := b.record(t)
	for _, scope := range []Scope{{Streams: []int32{1}}, {Streams: []int32{2}}, {}} {
		for range 20 {
			rv := 11 + rnd.IntN(b.RV-10)
			p := resolved(t, r, AtRV(strconv.Itoa(rv)), scope)
			want := b.liveAt(func(p *page) bool {
				n, _ := strconv.Atoi(p.rv)
				return n <= rv && (scope.Streams == nil || scope.Streams[0] == p.stream)
			})
			got, _ := rebuilt(t, r, p, scope, RebuildOptions{})
			require.Equal(t, want, got, "rv %d in %v with a checkpoint", rv, scope)
			got, _ = rebuilt(t, r, p, scope, RebuildOptions{NoCheckpoint: true})
			require.Equal(t, want, got, "rv %d in %v", rv, scope)
			if scope.Streams == nil {
				require.Contains(t, kinds(p.Notes), NoteOneEtcd)
			}
		}
	}
}

package history

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/internal/fold"
	"github.com/kuberewind/kuberewind/patch"
)

// values generates JSON values. It uses few keys and scalars: adjacent versions then resemble each other, so that patches
// move and shift values.
func values(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.SampledFrom([]any{nil, true, "", "a", "b~/é", json.Number("0"), json.Number("12")}),
		rapid.Map(rapid.IntRange(0, 9), func(n int) any { return strings.Repeat("x", n) }),
	)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(
		scalar,
		rapid.Map(rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return values(depth - 1) }), 0, 4), func(all []any) any { return all }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c/d", "e~f", "metadata", "resourceVersion"}),
			rapid.Deferred(func() *rapid.Generator[any] { return values(depth - 1) }), 0, 4), func(m map[string]any) any { return m }),
	)
}

func canonical(t require.TestingT, v any) patch.Doc {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	doc, err := patch.Canonical(text)
	require.NoError(t, err)
	return doc
}

// spelled returns a patch as jsonb prints it: with other blanks, and with its members in another order.
func spelled(t require.TestingT, change []byte) []byte {
	var operations []json.RawMessage
	require.NoError(t, json.Unmarshal(change, &operations))
	texts := make([]string, len(operations))
	for i, operation := range operations {
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(operation, &members))
		for _, key := range []string{"op", "old", "from", "path", "value"} {
			if value, ok := members[key]; ok {
				texts[i] += fmt.Sprintf(", %q: %s", key, value)
			}
		}
		texts[i] = "{" + strings.TrimPrefix(texts[i], ", ") + "}"
	}
	return []byte("[" + strings.Join(texts, ", ") + "]")
}

func TestJoinedPatchesEqualTheirSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		versioned := rapid.IntRange(0, 4).Draw(t, "has versions") > 0
		object := func(rv string) patch.Doc {
			meta := map[string]any{"name": "x", "labels": values(1).Draw(t, "labels")}
			if versioned {
				meta["resourceVersion"] = rv
			}
			return canonical(t, map[string]any{"metadata": meta, "spec": values(3).Draw(t, "spec")})
		}
		first := object("1")
		var o tailObject
		before := first
		if rapid.Bool().Draw(t, "begins in the tail") {
			before = nil
			o.rows = append(o.rows, tailRow{seq: 1, rv: "1", digest: patch.Digest(first), whole: s2.Encode(nil, first)})
		}
		doc, rows := first, rapid.IntRange(1, 9).Draw(t, "rows")
		for seq := 2; seq < 2+rows; seq++ {
			rv := strconv.Itoa(10 * seq)
			next := object(rv)
			if rapid.IntRange(0, 3).Draw(t, "only its version") == 0 {
				next = fold.Rebased(doc, rv)
			}
			change, err := patch.Diff(fold.Rebased(doc, rv), next)
			require.NoError(t, err)
			o.rows = append(o.rows, tailRow{seq: int64(seq), rv: rv, digest: patch.Digest(next), change: spelled(t, change)})
			doc = next
		}
		stepped := before
		for i := range o.rows {
			w := &o.rows[i]
			var whole []byte
			if w.whole != nil {
				whole = first
			}
			var err error
			stepped, err = fold.Row{RV: w.rv, Patch: w.change, Object: whole}.Checked(stepped, w.digest[:])
			require.NoError(t, err)
		}
		joined, err := o.fold(before)
		require.NoError(t, err)
		require.Equal(t, string(stepped), string(joined))
	})
}

func TestADamagedDeltaOfATailIsReportedByItsSeq(t *testing.T) {
	for name, damage := range map[string]string{
		"a value":       `UPDATE kuberewind.deltas_data SET patch = jsonb_set(patch, '{0,value}', '"forged"') WHERE seq = %d`,
		"no operations": `UPDATE kuberewind.deltas_data SET patch = '[]' WHERE seq = %d`,
		"no patch":      `UPDATE kuberewind.deltas_data SET patch = '"[]"' WHERE seq = %d`,
		"another path":  `UPDATE kuberewind.deltas_data SET patch = jsonb_set(patch, '{0,path}', '"/nowhere/at/all"') WHERE seq = %d`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t, 1)
			b.commit(b.set(0, "a", "x", `{"a":1,"b":1}`), b.set(0, "a", "y", `1`))
			_, err := b.checkpointer(t, checkpoint.Options{}).MakeOne(t.Context())
			require.NoError(t, err)
			b.commit(b.set(0, "a", "x", `{"a":2,"b":1}`), b.set(0, "a", "x", `{"a":2,"b":2}`), b.set(0, "a", "x", `{"a":3,"b":2}`))
			end := int64(len(b.pages))
			damagedSeq := end - 1 // the one between sets b alone, and no other row does
			b.DB.Exec(t, fmt.Sprintf(damage, damagedSeq))
			r := b.record(t)
			for _, o := range []RebuildOptions{{}, {NoCheckpoint: true}} {
				var named []int64
				o.Damaged = func(d *DamagedError) { named = append(named, d.Seq) }
				got, _ := rebuilt(t, r, resolved(t, r, AtSeq(end), Scope{}), Scope{}, o)
				require.Equal(t, []int64{damagedSeq}, named)
				require.Len(t, got, 1, "the rebuild emits the other object")
			}
		})
	}
}

func TestAnUnchangedBlockIsCopied(t *testing.T) {
	b := newBook(t, 1)
	rnd := random(t)
	for i := range 900 {
		b.commit(b.set(0, "a", fmt.Sprintf("o%03d", i), strconv.Itoa(i)))
	}
	c := b.checkpointer(t, checkpoint.Options{})
	_, err := c.MakeOne(t.Context())
	require.NoError(t, err)
	r := b.record(t)
	for range 4 {
		at := rnd.IntN(900)
		b.commit(b.set(0, "a", fmt.Sprintf("o%03d", at), `"changed"`), b.set(0, "a", fmt.Sprintf("o%03d-%d", at, len(b.pages)), `"born"`))
		if rnd.IntN(2) == 0 {
			b.commit(b.set(0, " ", "first", strconv.Itoa(at)), b.remove(0, "a", fmt.Sprintf("o%03d", at)), b.set(0, "z", "last", `1`))
			b.commit(b.set(0, "a", fmt.Sprintf("o%03d", at), `"again"`))
		}
		info, err := c.MakeOne(t.Context())
		require.NoError(t, err)
		p := resolved(t, r, Now(), Scope{})
		got, stats := rebuilt(t, r, p, Scope{}, RebuildOptions{})
		require.Equal(t, info.Seq, stats.Checkpoint)
		require.Zero(t, stats.Tail)
		require.Equal(t, b.liveAt(bySeq(info.Seq)), got)
	}
	var shared int
	require.NoError(t, b.DB.Pool(t).QueryRow(t.Context(), `
		SELECT count(*) FROM (SELECT FROM kuberewind.checkpoint_blocks WHERE block > 0 GROUP BY digest HAVING count(*) > 1) AS same`).Scan(&shared))
	require.Positive(t, shared)
}

package history

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// benchmarkRecord returns a record of several thousand objects over five days. Each object changes several times; one step
// in fifty deletes an object.
func benchmarkRecord(b *testing.B, objects, deltas int) *book {
	book := newBook(b, 2)
	rnd := rand.New(rand.NewPCG(1, 2))
	spec := func(i int) string {
		return fmt.Sprintf(`{"containers":[{"name":"app","image":"registry.example.com/app:v%d","resources":{"limits":{"cpu":"%dm"}},"env":[%s]}],"nodeName":"node-%d"}`,
			i, rnd.IntN(1000), environment, rnd.IntN(100))
	}
	for n := 0; n < deltas; {
		var items []postgres.Item
		for range 1000 {
			name := "o" + strconv.Itoa(rnd.IntN(objects))
			stream, namespace := len(name)%2, "ns"+name[1:2]
			if n++; rnd.IntN(50) == 0 && book.live(stream, namespace, name) != nil {
				items = append(items, book.remove(stream, namespace, name))
				continue
			}
			items = append(items, book.set(stream, namespace, name, spec(n)))
		}
		book.commit(items...)
		book.Now = book.Now.Add(5 * 24 * time.Hour / time.Duration(deltas/1000))
	}
	return book
}

var environment = func() (text string) {
	for i := range 30 {
		text += fmt.Sprintf(`%s{"name":"VARIABLE_%d","value":"value of the variable with the number %d"}`, map[bool]string{true: ","}[i > 0], i, i*i)
	}
	return text
}()

// BenchmarkRebuild compares, in one run, rebuilding without a checkpoint and with tails of several lengths after one.
func BenchmarkRebuild(b *testing.B) {
	const objects, deltas = 5000, 60_000
	book := benchmarkRecord(b, objects, deltas)
	r := book.record(b)
	checkpointer := book.checkpointer(b, checkpoint.Options{})
	end := int64(len(book.pages))
	run := func(b *testing.B, o RebuildOptions, scope Scope) {
		p, err := r.Resolve(b.Context(), AtSeq(end), Scope{})
		require.NoError(b, err)
		var stats RebuildStats
		for b.Loop() {
			stats, err = r.Rebuild(b.Context(), p, scope, o, func(Object) error { return nil })
			require.NoError(b, err)
		}
		b.ReportMetric(float64(stats.Objects), "objects")
		b.ReportMetric(float64(stats.Tail), "tail")
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/max(float64(stats.Objects), 1), "µs/object")
	}
	b.Run("deltas alone", func(b *testing.B) { run(b, RebuildOptions{NoCheckpoint: true}, Scope{}) })
	info, err := checkpointer.MakeOne(b.Context())
	require.NoError(b, err)
	b.Run("checkpoint", func(b *testing.B) {
		run(b, RebuildOptions{}, Scope{})
		b.ReportMetric(float64(info.Bytes)/float64(info.Objects), "B/object")
	})
	b.Run("one namespace of a checkpoint", func(b *testing.B) {
		run(b, RebuildOptions{}, Scope{Streams: []int32{1}, Namespace: "ns1"})
	})
	b.Run("one object", func(b *testing.B) { run(b, RebuildOptions{}, Scope{Streams: []int32{1}, Namespace: "ns1", Name: "o1"}) })
	for _, tail := range []int{1, 1, 2, 4} { // the tails add up to 1, 2, 4 and 8 times the number of live objects
		more := tail * objects
		for range more / 1000 {
			var items []postgres.Item
			for i := range 1000 {
				name := "o" + strconv.Itoa((i*7+tail)%objects)
				items = append(items, book.set(len(name)%2, "ns"+name[1:2], name, fmt.Sprintf(`{"containers":[{"name":"app","image":"v%d"}],"env":[%s]}`, i+tail, environment)))
			}
			book.commit(items...)
		}
		end = int64(len(book.pages))
		b.Run(fmt.Sprintf("checkpoint and %d deltas", end-info.Seq), func(b *testing.B) { run(b, RebuildOptions{}, Scope{}) })
	}
	b.Run("as many, from deltas alone", func(b *testing.B) { run(b, RebuildOptions{NoCheckpoint: true}, Scope{}) })
}

func BenchmarkDeltas(b *testing.B) {
	book := benchmarkRecord(b, 2000, 20_000)
	r := book.record(b)
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			for _, err := range r.Deltas(b.Context(), Query{}) {
				require.NoError(b, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/20_000, "µs/delta")
	})
	b.Run("versions", func(b *testing.B) {
		for b.Loop() {
			for _, err := range r.Versions(b.Context(), Query{}) {
				require.NoError(b, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/20_000, "µs/delta")
	})
	b.Run("resolve a time", func(b *testing.B) {
		for b.Loop() {
			_, err := r.Resolve(b.Context(), At(book.pages[12_345].observed), Scope{})
			require.NoError(b, err)
		}
	})
}

package schemacheck_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/schemacheck"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/streamtest"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// compared is a Comparer of one stream. The test replaces its run and its list.
type compared struct {
	*schemacheck.Comparer
	record *streamtest.Recording
	fifo   *deltafifo.FIFO
	lists  bool // a list of the stream runs
	at     time.Time
	calls  []string // the schema argument of each call of Compare
	fails  error
	served kube.Resource
}

// following is a stream whose served resource the test sets.
type following struct {
	*stream.Stream
	by *compared
}

func (f following) Serving() (kube.Resource, bool) { return f.by.served, !f.by.lists }

func newCompared(t *testing.T) *compared {
	c := &compared{record: streamtest.New(t), at: time.Date(2026, 3, 10, 23, 0, 0, 0, time.UTC), served: kube.Resource{Version: "v1", Name: "pods", Kind: "Pod", Schema: "a"}}
	_, fifo := c.record.Follow("pods", "Pod")
	c.fifo = fifo
	c.Comparer = &schemacheck.Comparer{
		Streams: func() []schemacheck.Stream { return []schemacheck.Stream{following{c.record.Streams.All()[0], c}} },
		Schemas: schemacheck.NewSchemas(), Now: func() time.Time { return c.at }, Log: slog.New(slog.DiscardHandler),
		Compare: func(_ context.Context, _ schemacheck.Stream, _ kube.Resource, schema string) (int, error) {
			c.calls = append(c.calls, schema)
			if c.fails == nil && schema != "" {
				require.NoError(t, fifo.Tail().Compared(schema))
			}
			return 0, c.fails
		},
	}
	c.Schemas.Defined(c.served)
	c.Schemas.Release([]byte(`{"gitVersion":"v1.36.0"}`))
	return c
}

// rounds calls Round once a second, and returns the schema arguments of the comparisons.
func (c *compared) rounds(seconds int) []string {
	c.calls = nil
	for range seconds {
		c.Round(context.Background())
		c.at = c.at.Add(time.Second)
	}
	return c.calls
}

func (c *compared) stream() *postgres.Stream { return c.record.Streams.All()[0].Recorded() }

func TestANewSchemaIsComparedTwiceAndRecorded(t *testing.T) {
	c := newCompared(t)
	require.Equal(t, []string{""}, c.rounds(20))
	require.Equal(t, []string{"v1 a v1.36.0"}, c.rounds(200), "and no third time, although the schema is not on record yet")
	c.record.Pump()
	require.Equal(t, "v1 a v1.36.0", c.stream().Schema())
	require.Empty(t, c.rounds(200))

	for _, change := range []func(){
		func() { c.served.Schema = "b"; c.Schemas.Defined(c.served) },
		func() { c.Schemas.Release([]byte(`{"gitVersion":"v1.37.0"}`)) },
		func() { c.served.Version = "v2" },
	} {
		change()
		require.Len(t, c.rounds(200), 2)
		c.record.Pump()
	}
	require.Equal(t, "v2 b v1.37.0", c.stream().Schema())
}

func TestTheNextRecorderComparesASchemaThatChangedMeanwhile(t *testing.T) {
	c := newCompared(t)
	require.Len(t, c.rounds(30), 2)
	c.record.Pump()
	c.record.Sink.Close()
	c.record.Open()
	st, fifo := c.record.Follow("pods", "Pod")
	require.Equal(t, "v1 a v1.36.0", st.Recorded().Schema())
	c.fifo = fifo
	require.Empty(t, c.rounds(30))
	c.Schemas.Release([]byte(`{"gitVersion":"v1.37.0"}`))
	require.Equal(t, []string{""}, c.rounds(1))
}

func TestAFailedComparisonIsRetriedAndReplacedByALaterSchema(t *testing.T) {
	c := newCompared(t)
	c.fails = errors.New("no")
	require.Equal(t, []string{"", ""}, c.rounds(61))
	c.fails = nil
	require.Equal(t, []string{"", "v1 a v1.36.0"}, c.rounds(200))
	c.served.Schema = "b"
	c.Schemas.Defined(c.served)
	require.Equal(t, []string{"", "v1 b v1.36.0"}, c.rounds(200), "even if the earlier schema is not on record yet")

	c.served.Schema = "c"
	c.Schemas.Defined(c.served)
	c.lists = true
	require.Empty(t, c.rounds(200), "a list runs")
}

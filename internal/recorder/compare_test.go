package recorder

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/schemacheck"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A compared is a comparer of one stream, whose list the test stands in for.
type compared struct {
	*schemacheck.Comparer
	swept  *swept
	fifo   *deltafifo.FIFO
	at     time.Time
	calls  []string // the schemas that were said, "" for none
	fails  error
	served kube.Resource
}

func newCompared(t *testing.T) *compared {
	c := &compared{swept: newSwept(t), at: time.Date(2026, 3, 10, 23, 0, 0, 0, time.UTC), served: kube.Resource{Version: "v1", Name: "pods", Kind: "Pod", Schema: "a"}}
	st, fifo := c.swept.follow("pods", "Pod")
	st.run = &streamRun{served: c.served}
	c.fifo = fifo
	c.Comparer = &schemacheck.Comparer{
		Streams: func() []schemacheck.Stream { return streamsAs[schemacheck.Stream](c.swept.recorder.snapshot()) },
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

// rounds looks once a second, and gives what was compared.
func (c *compared) rounds(seconds int) []string {
	c.calls = nil
	for range seconds {
		c.Round(context.Background())
		c.at = c.at.Add(time.Second)
	}
	return c.calls
}

func (c *compared) stream() *postgres.Stream { return c.swept.recorder.snapshot()[0].record }

func TestANewSchemaIsComparedTwiceAndRecorded(t *testing.T) {
	c := newCompared(t)
	require.Equal(t, []string{""}, c.rounds(20))
	require.Equal(t, []string{"v1 a v1.36.0"}, c.rounds(200), "and no more, though it is not on record yet")
	c.swept.pump()
	require.Equal(t, "v1 a v1.36.0", c.stream().Schema())
	require.Empty(t, c.rounds(200))

	for _, change := range []func(){
		func() { c.served.Schema = "b"; c.Schemas.Defined(c.served) },
		func() { c.Schemas.Release([]byte(`{"gitVersion":"v1.37.0"}`)) },
		func() {
			c.swept.recorder.snapshot()[0].run = &streamRun{served: kube.Resource{Version: "v2", Name: "pods"}}
		},
	} {
		change()
		require.Len(t, c.rounds(200), 2)
		c.swept.pump()
	}
	require.Equal(t, "v2 b v1.37.0", c.stream().Schema())
}

func TestTheNextRecorderComparesASchemaThatChangedMeanwhile(t *testing.T) {
	c := newCompared(t)
	require.Len(t, c.rounds(30), 2)
	c.swept.pump()
	c.swept.sink.Close()
	c.swept.open()
	st, fifo := c.swept.follow("pods", "Pod")
	require.Equal(t, "v1 a v1.36.0", st.record.Schema())
	st.run = &streamRun{served: c.served}
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
	require.Equal(t, []string{"", "v1 b v1.36.0"}, c.rounds(200), "though the one before is not on record yet")

	c.served.Schema = "c"
	c.Schemas.Defined(c.served)
	c.swept.recorder.snapshot()[0].run.listing.Store(true)
	require.Empty(t, c.rounds(200), "a list is on its way")
}

package pump

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A slow sink commits when the test lets it.
type slow struct {
	encoded int
	commit  chan error
}

func (s *slow) Encode([]postgres.Item) (*postgres.Batch, error) {
	s.encoded++
	return &postgres.Batch{}, nil
}

func (s *slow) Commit(context.Context, *postgres.Batch) error { return <-s.commit }

// pumped returns a pump that moves three entries, one by one.
func pumped(t *testing.T) (queue *deltafifo.Queue, sink *slow, offsets *[]uint64, ended chan error) {
	t.Helper()
	queue, sink, offsets, ended = deltafifo.New(deltafifo.Options{}), &slow{commit: make(chan error)}, new([]uint64), make(chan error, 1)
	fifo := queue.FIFO(deltafifo.FIFOOptions{})
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, fifo.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"}}))
	}
	queue.Close()
	p := &Pump{
		Queue: queue, Sink: sink, Rows: 1,
		Items: func([]deltafifo.Entry) ([]postgres.Item, error) { return nil, nil },
		Offset: func(next uint64) postgres.Offset {
			*offsets = append(*offsets, next)
			return postgres.Offset{}
		},
		Verified:  func(time.Time) time.Time { return time.Time{} },
		Committed: func([]deltafifo.Entry) {},
	}
	go func() { ended <- p.Run(t.Context()) }()
	synctest.Wait()
	return queue, sink, offsets, ended
}

func TestTheQueueKeepsAnEntryUntilItIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, sink, offsets, ended := pumped(t)
		for rest := 3; rest > 0; rest-- {
			require.Equal(t, rest, queue.Stats().Entries, "I1")
			require.Equal(t, min(3, 3-rest+2), sink.encoded, "encoding is one batch ahead")
			sink.commit <- nil
			synctest.Wait()
		}
		require.NoError(t, <-ended)
		require.Zero(t, queue.Stats().Entries)
		first := (*offsets)[0]
		require.Equal(t, []uint64{first, first + 1, first + 2}, *offsets, "I7: after each batch")
	})
}

func TestAnEntryThatIsNotCommittedStaysQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, sink, _, ended := pumped(t)
		lost := errors.New("the record is another's")
		sink.commit <- lost
		require.ErrorIs(t, <-ended, lost)
		require.Equal(t, 3, queue.Stats().Entries)
		time.Sleep(time.Minute)
		require.Equal(t, 2, sink.encoded, "nothing is encoded after it")
	})
}

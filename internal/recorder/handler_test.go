package recorder

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestTheRecordOfAResourceThatEndsIsCompleteOnlyIfItWasWatchedToItsEnd(t *testing.T) {
	nothing := func(*store) {}
	for name, test := range map[string]struct {
		before func(*store)
		closed time.Duration // before the server says that it does not serve it
		at     string
		want   deltafifo.MarkerKind
	}{
		"watched to its end":                  {nothing, 0, "", deltafifo.Resumed},
		"not watched for a while":             {nothing, time.Minute, "", deltafifo.Interrupted},
		"interrupted before":                  {func(st *store) { require.NoError(t, st.Interrupted(reflector.CauseForbidden, "")) }, 0, "", deltafifo.Interrupted},
		"something of it lives on":            {func(st *store) { require.NoError(t, st.Add(&kube.Object{ObjectMeta: metav1.ObjectMeta{Name: "a"}})) }, 0, "", deltafifo.Interrupted},
		"not watched, but known to have gone": {nothing, time.Minute, "9", deltafifo.Replaced},
		"gone before what is on record":       {nothing, time.Minute, "4", deltafifo.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Recorder{queue: deltafifo.New(deltafifo.Options{}), log: slog.New(slog.DiscardHandler)}
			all, err := (&Recorder{}).cfg.Filter()
			require.NoError(t, err)
			s := &stream{name: "things", record: &postgres.Stream{}, rules: all.For(kube.Resource{Name: "things"}.GroupResource()), settle: func() {}, claims: newRevisions().stream("things")}
			run := &streamRun{gone: make(chan struct{}), fifo: r.queue.FIFO(deltafifo.FIFOOptions{Stream: s})}
			s.run = run
			st := newStore(s, run)
			run.reflector = reflector.NewReflectorWithOptions(&cache.ListWatch{}, nil, st, reflector.Options{ResourceVersion: "5"})
			test.before(st)
			run.closed.Store(time.Now().Add(-test.closed).UnixNano())
			require.NoError(t, st.Interrupted(reflector.CauseNotFound, "the server could not find the requested resource"))
			run.fifo.Close()
			require.NoError(t, r.end(t.Context(), s, run, test.at))
			r.queue.Close()
			entries, err := r.queue.Next(t.Context(), 10, 1<<20, 0)
			require.NoError(t, err)
			require.Equal(t, test.want, entries[len(entries)-1].Marker.Kind)
		})
	}
}

package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kuberewind/kuberewind/apiserver/internal/session"
	"github.com/kuberewind/kuberewind/history"
)

// The record and the root are doubles, because real ones cannot run in a bubble of testing/synctest, where half an hour takes no time. Tests over HTTP, in
// the package apiserver, use real ones.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// record has deltas at seconds after begin: the delta with seq 1 was observed at the first one.
type record struct {
	mu      sync.Mutex
	seconds []float64
	end     float64
	gap     history.Moment // the end of a gap, before all later deltas
	err     error
}

func after(seconds float64) time.Time {
	return begin.Add(time.Duration(seconds * float64(time.Second)))
}

func (r *record) change(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *record) Resolve(_ context.Context, at history.Instant, _ history.Scope) (history.Point, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, s := range r.seconds {
		if at == history.AtSeq(int64(i+1)) {
			return history.Point{Instant: at, Seq: int64(i + 1), Time: after(s)}, r.err
		}
	}
	return history.Point{Instant: at, Seq: int64(len(r.seconds)), Time: after(r.end)}, r.err
}

func (r *record) Extent(context.Context) (history.Extent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return history.Extent{FirstSeq: 1, LastSeq: int64(len(r.seconds)), LastAt: after(r.end)}, r.err
}

func (r *record) EndedBy(_ context.Context, seq int64, at time.Time) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gap.Seq != seq || r.gap.At.After(at) {
		return 0, r.err
	}
	return r.gap.Batch, r.err
}

func (r *record) Moments(_ context.Context, last history.Moment, most int) (found []history.Moment, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := last.Seq; i < int64(len(r.seconds)) && len(found) < min(most, 2); i++ { // at most two at once, so that a session reads several times
		found = append(found, history.Moment{Seq: i + 1, At: after(r.seconds[i])})
	}
	if r.gap.Batch > last.Batch && r.gap.Seq == last.Seq+int64(len(found)) {
		found = append(found, r.gap)
	}
	return found, r.err
}

// A step is the time at which a root reached a seq, since the test began.
type step struct {
	to    int64
	after time.Duration
}

// root records its moves.
type root struct {
	mu     sync.Mutex
	began  time.Time
	seq    int64
	steps  []step
	ended  []step // ends of gaps, by their commits
	closed bool
}

func (r *root) to(seq int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq = seq
	r.steps = append(r.steps, step{seq, time.Since(r.began)})
}

func (r *root) passed() []step {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

func (r *root) moved() []step {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps
}

func (r *root) Serve(_ http.ResponseWriter, request *http.Request) error {
	<-request.Context().Done() // as a watch does
	return nil
}
func (r *root) Jump(to, _ int64) { r.to(to) }
func (r *root) Advance(_ context.Context, to, ends int64) error {
	r.to(to)
	if ends > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = append(r.ended, step{ends, time.Since(r.began)})
	}
	return nil
}
func (r *root) Open() int { return 0 }
func (r *root) Close()    { r.mu.Lock(); defer r.mu.Unlock(); r.closed = true }

func (r *root) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

func (r *root) Seq() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

// A world has one cluster, c. All its sessions have the same root.
type world struct {
	*testing.T
	*session.Registry
	record *record
	root   *root
}

// inWorld runs a test in a bubble, with deltas at some seconds after begin.
func inWorld(t *testing.T, seconds []float64, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, record: &record{seconds: seconds, end: seconds[len(seconds)-1]}, root: &root{began: time.Now()}}
		clusters := map[string]session.Cluster{"c": {Record: w.record, Timeline: w.record, NewRoot: func() session.Root { return w.root }}}
		w.Registry = session.New(clusters, slog.New(slog.DiscardHandler))
		defer w.Close()
		test(w)
	})
}

// ask calls the JSON API.
func (w *world) ask(method, body string) (state session.State, err error) {
	w.Helper()
	answer := httptest.NewRecorder()
	err = w.ServeAPI(answer, httptest.NewRequestWithContext(w.Context(), method, "/session/v1/s", strings.NewReader(body)))
	if err == nil {
		text, _ := io.ReadAll(answer.Body)
		require.NoError(w, json.Unmarshal(text, &state))
	}
	return state, err
}

func (w *world) set(body string) session.State {
	w.Helper()
	state, err := w.ask(http.MethodPut, body)
	require.NoError(w, err)
	return state
}

// elapse lets time pass, and waits until all due work is done.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestDeltasComeAtTheirTimesWhileAClockPlays(t *testing.T) {
	seconds := []float64{0, 0, 1, 1.05, 4, 4, 100}
	for speed, times := range map[string]map[int64]time.Duration{
		"1":   {2: 0, 3: 1 * time.Second, 4: 1050 * time.Millisecond, 6: 4 * time.Second, 7: 100 * time.Second},
		"10":  {2: 0, 4: 105 * time.Millisecond, 6: 400 * time.Millisecond, 7: 10 * time.Second},
		"0.5": {2: 0, 3: 2 * time.Second, 4: 2100 * time.Millisecond, 6: 8 * time.Second, 7: 200 * time.Second},
	} {
		inWorld(t, seconds, func(w *world) {
			w.set(`{"at": "seq:1", "playing": true, "speed": ` + speed + `}`)
			elapse(5 * time.Minute)
			came := map[int64]time.Duration{}
			last := int64(0)
			for _, s := range w.root.moved() {
				require.Greater(w, s.to, last, "each once, in order")
				last, came[s.to] = s.to, s.after
			}
			require.EqualValues(w, 7, last)
			for seq, at := range times {
				require.Contains(w, came, seq, "at speed %s", speed)
				require.InDelta(w, at.Seconds(), came[seq].Seconds(), 0.1, "seq:%d at speed %s", seq, speed)
			}
		})
	}
}

func TestTheEndOfAGapWithoutDeltasIsPassedAtItsTime(t *testing.T) {
	inWorld(t, []float64{0, 1, 2}, func(w *world) {
		w.record.change(func() { w.record.gap, w.record.end = history.Moment{Seq: 3, At: after(10), Batch: 7}, 100 })
		w.set(`{"at": "seq:2", "playing": true}`)
		elapse(5 * time.Second)
		require.Empty(w, w.root.passed())
		elapse(5 * time.Minute)
		require.Len(w, w.root.passed(), 1, "once")
		require.EqualValues(w, 7, w.root.passed()[0].to)
		require.InDelta(w, 9, w.root.passed()[0].after.Seconds(), 0.4)
		require.EqualValues(w, 3, w.root.Seq())
	})
}

func TestAClockMovesOnlyWhileItPlays(t *testing.T) {
	inWorld(t, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, func(w *world) {
		state := w.set(`{"at": "seq:1"}`)
		require.False(w, state.Playing)
		elapse(time.Minute)
		require.EqualValues(w, 1, w.root.Seq())
		w.set(`{"playing": true}`)
		elapse(3500 * time.Millisecond)
		state = w.set(`{"playing": false}`)
		require.EqualValues(w, 4, state.Seq)
		require.WithinDuration(w, after(3.5), state.Time, 200*time.Millisecond)
		elapse(time.Minute)
		again, err := w.ask(http.MethodGet, "")
		require.NoError(w, err)
		require.Equal(w, state.Time, again.Time)
		require.EqualValues(w, 4, again.Seq)
		w.set(`{"playing": true, "speed": 1000}`)
		elapse(time.Second)
		require.EqualValues(w, 10, w.root.Seq())
	})
}

func TestASeekJumpsAndPlayingContinues(t *testing.T) {
	inWorld(t, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, func(w *world) {
		w.set(`{"at": "seq:1", "playing": true}`)
		elapse(1500 * time.Millisecond)
		w.set(`{"at": "seq:8"}`)
		require.EqualValues(w, 8, w.root.Seq())
		elapse(1500 * time.Millisecond)
		require.EqualValues(w, 9, w.root.Seq())
		state := w.set(`{"at": "seq:3"}`)
		require.True(w, state.Playing)
		require.Equal(w, after(2), state.Time)
		elapse(2500 * time.Millisecond)
		require.EqualValues(w, 5, w.root.Seq())
	})
}

func TestAtTheEndAClockWaitsForTheRecord(t *testing.T) {
	inWorld(t, []float64{0, 1}, func(w *world) {
		w.set(`{"at": "seq:1", "playing": true, "speed": 60}`)
		elapse(time.Minute)
		state, err := w.ask(http.MethodGet, "")
		require.NoError(w, err)
		require.True(w, state.AtEnd)
		require.Equal(w, after(1), state.Time, "it does not run ahead of the record")
		w.record.change(func() { w.record.seconds, w.record.end = append(w.record.seconds, 70), 80 })
		elapse(5 * time.Second)
		require.EqualValues(w, 3, w.root.Seq())
		state = w.set(`{"at": "seq:1"}`)
		require.False(w, state.AtEnd)
	})
}

func TestAClockStopsWhileTheRecordCannotBeRead(t *testing.T) {
	inWorld(t, []float64{0, 1, 2, 3, 300}, func(w *world) {
		w.set(`{"at": "seq:1", "playing": true}`)
		elapse(1500 * time.Millisecond)
		w.record.change(func() { w.record.err = errors.New("the database is away") })
		elapse(2 * time.Minute)
		state, err := w.ask(http.MethodGet, "")
		require.NoError(w, err)
		require.Equal(w, "the database is away", state.Problem)
		require.WithinDuration(w, after(3), state.Time, time.Second)
		w.record.change(func() { w.record.err = nil })
		elapse(10 * time.Second)
		state, err = w.ask(http.MethodGet, "")
		require.NoError(w, err)
		require.Empty(w, state.Problem)
		require.EqualValues(w, 4, state.Seq)
		require.WithinDuration(w, after(13), state.Time, 2*time.Second, "it goes on where it stood")
	})
}

func TestASessionEndsHalfAnHourAfterItsLastRequest(t *testing.T) {
	for _, playing := range []string{"false", "true"} {
		inWorld(t, []float64{0, 1, 2}, func(w *world) {
			w.set(`{"at": "seq:1", "playing": ` + playing + `}`)
			elapse(29 * time.Minute)
			state, err := w.ask(http.MethodGet, "")
			require.NoError(w, err, "a request keeps it")
			require.Equal(w, time.Now().Add(30*time.Minute).UTC(), state.Expires)
			elapse(29 * time.Minute)
			ctx, cancel := context.WithCancel(w.Context())
			served := make(chan error, 1)
			go func() {
				served <- w.Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods?watch=1", nil), "c", "s")
			}()
			elapse(24 * time.Hour)
			w.set(`{"speed": 2}`) // An open watch keeps the session for any time.
			elapse(31 * time.Minute)
			cancel()
			require.NoError(w, <-served)
			elapse(30*time.Minute - time.Second)
			require.False(w, w.root.isClosed())
			elapse(time.Second)
			require.True(w, w.root.isClosed())
			_, err = w.ask(http.MethodGet, "")
			require.ErrorContains(w, err, `a session ends 30 minutes after its last request`)
			err = w.Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(w.Context(), http.MethodGet, "/api", nil), "c", "s")
			require.ErrorContains(w, err, `"replay session s --at INSTANT" creates it again`)
		})
	}
}

func TestCloseEndsAllSessions(t *testing.T) {
	inWorld(t, []float64{0, 1, 2}, func(w *world) {
		w.set(`{"at": "seq:1", "playing": true}`)
		w.Close()
		require.True(w, w.root.isClosed())
		_, err := w.ask(http.MethodPut, `{"at": "seq:1"}`)
		require.Error(w, err)
	})
}

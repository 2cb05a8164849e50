package reflector

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs a test on a clock that moves only when every goroutine waits.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// elapse lets time pass, and waits until everything that is due has happened.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// start runs a reflector until the test ends or the returned function is called. That function waits for the reflector.
// start returns when the reflector waits for something.
func start(t *testing.T, r *Reflector) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.RunWithContext(ctx)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	synctest.Wait()
	return stop
}

package chaos_test

import (
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// restartPause is how long a keeper waits before it starts a recorder again.
const restartPause = time.Second

// A keeper keeps a recorder running, as a supervisor does.
type keeper struct {
	args  []string
	ended func(code int) // called at each end of a process
	wait  sync.WaitGroup

	mu      sync.Mutex // protects what follows
	process *recordertest.Process
	stop    chan struct{} // closed to stop the keeper; nil while it is stopped
	logs    []*recordertest.Process
}

func newKeeper(t *testing.T, ended func(code int), args ...string) *keeper {
	t.Helper()
	k := &keeper{args: args, ended: ended}
	t.Cleanup(k.end)
	return k
}

// start starts a process.
func (k *keeper) start(t *testing.T) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop != nil {
		return
	}
	k.stop = make(chan struct{})
	if err := k.spawnLocked(); err != nil {
		t.Fatalf("start a recorder: %v", err)
	}
	k.wait.Go(func() { k.keep(k.stop) })
}

func (k *keeper) spawnLocked() error {
	p, err := recordertest.Run(k.args...)
	if err != nil {
		return err
	}
	k.process = p
	k.logs = append(k.logs, p)
	return nil
}

func (k *keeper) keep(stop chan struct{}) {
	for {
		p := k.current()
		<-p.Ended()
		k.ended(p.ExitCode())
		select {
		case <-stop:
			return
		case <-time.After(restartPause):
		}
		if !k.again(stop) {
			return
		}
	}
}

// again starts another process, unless the keeper was stopped. A failed start counts as an end.
func (k *keeper) again(stop chan struct{}) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-stop:
		return false
	default:
		_ = k.spawnLocked()
		return true
	}
}

// current returns the running process, or the last one.
func (k *keeper) current() *recordertest.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process
}

// signal sends a signal to the running process. It is no error if the process has ended.
func (k *keeper) signal(signal syscall.Signal) { _ = k.current().Signal(signal) }

// end kills the process and does not restart it. start starts it again.
func (k *keeper) end() {
	k.mu.Lock()
	if k.stop != nil {
		close(k.stop)
		k.stop = nil
		_ = k.process.Signal(syscall.SIGKILL)
	}
	k.mu.Unlock()
	k.wait.Wait()
}

// log returns the logs of all processes.
func (k *keeper) log() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var text strings.Builder
	for _, p := range k.logs {
		text.WriteString(p.Log() + "\n\n")
	}
	return text.String()
}

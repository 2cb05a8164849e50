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
	args []string
	tell func(code int) // of each end of a process
	wait sync.WaitGroup

	mu      sync.Mutex // protects what follows
	process *recordertest.Process
	stop    chan struct{} // closed when no process is wanted any more; nil while none is
	logs    []*recordertest.Process
}

func newKeeper(t *testing.T, tell func(code int), args ...string) *keeper {
	t.Helper()
	k := &keeper{args: args, tell: tell}
	t.Cleanup(k.end)
	return k
}

// start returns when a process has been started.
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
		k.tell(p.ExitCode())
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

// again starts another process, unless none is wanted any more. One that cannot be started counts as one that has ended.
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

// current is the process that runs, or the last one that did.
func (k *keeper) current() *recordertest.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process
}

// signal reaches the process that runs; that it has ended is no error.
func (k *keeper) signal(signal syscall.Signal) { _ = k.current().Signal(signal) }

// end kills the process for good; start begins anew.
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

// log is what all processes have logged.
func (k *keeper) log() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var text strings.Builder
	for _, p := range k.logs {
		text.WriteString(p.Log() + "\n\n")
	}
	return text.String()
}

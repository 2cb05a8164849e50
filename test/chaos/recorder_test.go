package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// restartPause is how long a keeper waits before it starts a recorder again.
const restartPause = time.Second

// recorders are the recorders of one cluster and record: mostly one, for a while two.
type recorders struct {
	dir     string   // has a folder for each recorder
	args    []string // of each recorder
	first   *keeper
	other   *keeper // keeper of the second recorder, while there are two
	made    int
	retired []*keeper

	mu    sync.Mutex // protects exits
	exits map[int]int
}

// newRecorders returns one recorder, which start starts. All recorders share the redaction key.
func newRecorders(t *testing.T, dir, kubeconfig, database string) *recorders {
	t.Helper()
	r := &recorders{dir: dir, exits: map[int]int{}}
	r.args = []string{"--kubeconfig", kubeconfig, "--database", database,
		"--redaction-key-file", r.keyFile(), "--cluster-name", "chaos", "--listen", "127.0.0.1:0", "--queue-size", "1Mi"}
	r.first = r.add(t)
	return r
}

// keyFile returns the path of the key with which the recorders hash the values of Secrets.
func (r *recorders) keyFile() string { return filepath.Join(r.dir, "redaction.key") }

// add returns a recorder with its own folder, and with a small queue.
func (r *recorders) add(t *testing.T) *keeper {
	t.Helper()
	r.made++
	return newKeeper(t, r.ended, slices.Concat(r.args, []string{"--data-dir", filepath.Join(r.dir, fmt.Sprint("recorder-", r.made))})...)
}

func (r *recorders) ended(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exits[code]++
}

// expectedExits are the exit codes of a recorder that was killed, that has ended after SIGTERM, that has no database, and that another recorder has fenced.
var expectedExits = []int{-1, 0, 3, 4}

// unexpected returns the other exit codes.
func (r *recorders) unexpected() (codes []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for code := range r.exits {
		if !slices.Contains(expectedExits, code) {
			codes = append(codes, code)
		}
	}
	return codes
}

// second starts another recorder of the same cluster and record.
func (r *recorders) second(t *testing.T) {
	t.Helper()
	r.other = r.add(t)
	r.other.start(t)
}

// stopOne stops one of the two.
func (r *recorders) stopOne(random *rand.Rand) {
	if random.IntN(2) == 0 {
		r.first, r.other = r.other, r.first
	}
	r.other.end()
	r.retired = append(r.retired, r.other)
	r.other = nil
}

// log returns the logs of all recorders.
func (r *recorders) log() string {
	var text strings.Builder
	for _, k := range append(r.retired, r.first) {
		text.WriteString(k.log())
	}
	return text.String()
}

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

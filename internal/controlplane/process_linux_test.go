package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAChildOutlivesTheThreadThatStartedIt(t *testing.T) {
	var child *process
	thread := onThreadThatEnds(func() {
		var err error
		child, err = startProcess(t.Context(), "/bin/sleep", []string{"60"}, t.TempDir(), filepath.Join(t.TempDir(), "log"), func() {})
		if err != nil {
			t.Error(err)
		}
	})
	require.Eventually(t, func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
		return os.IsNotExist(err)
	}, 5*time.Minute, time.Millisecond, "the thread must end")
	require.NoError(t, child.pause(), "the kernel would have killed the child by now")
	require.NoError(t, child.kill())
}

// onThreadThatEnds runs do on a thread of its own, and returns that thread's id when do has returned. The thread ends soon
// after. The first thread of a process never ends. A goroutine on it holds it until another one, which must then be elsewhere,
// is through.
func onThreadThatEnds(do func()) int {
	thread := make(chan int)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		if syscall.Gettid() == os.Getpid() {
			thread <- onThreadThatEnds(do)
			return
		}
		do()
		thread <- syscall.Gettid()
	}()
	return <-thread
}

func TestAPauseOfADeadProcessIsAnError(t *testing.T) {
	child, err := startProcess(t.Context(), "/bin/sleep", []string{"60"}, t.TempDir(), filepath.Join(t.TempDir(), "log"), func() {})
	require.NoError(t, err)
	require.NoError(t, child.kill())
	require.Error(t, child.pause())
	require.NoError(t, child.kill(), "a second kill")
}

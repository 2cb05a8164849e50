package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// helperEnv makes the test binary a process that starts a server, and then panics or waits for a kill.
const helperEnv = "PGTEST_TEST_HELPER"

func TestMain(m *testing.M) {
	if end := os.Getenv(helperEnv); end != "" {
		helper(end)
	}
	Main(m)
}

func helper(end string) {
	server, err := openShared()
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(server.local.held.PID(), server.local.root)
	if end == "panic" {
		panic("as a test may")
	}
	select {}
}

func TestNothingOutlivesTheTestProcess(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"panic", "kill -9", "kill -9 of the process group"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), helperEnv+"="+end, URLEnv+"=")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			output, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			line, err := bufio.NewReader(output).ReadString('\n')
			require.NoError(t, err)
			var pid int
			var root string
			_, err = fmt.Sscanf(line, "%d %s", &pid, &root)
			require.NoError(t, err, line)
			switch end {
			case "kill -9":
				require.NoError(t, cmd.Process.Kill())
			case "kill -9 of the process group":
				require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
			}
			require.Error(t, cmd.Wait())
			require.Eventually(t, func() bool {
				_, err := os.Stat(root)
				return errors.Is(err, fs.ErrNotExist) && !isPostgres(pid)
			}, 5*time.Minute, 20*time.Millisecond)
		})
	}
}

// isPostgres returns false for a process that ended and was not yet collected.
func isPostgres(pid int) bool {
	out, _ := exec.Command("ps", "-o", "stat=,comm=", "-p", fmt.Sprint(pid)).Output()
	return strings.Contains(string(out), "postgres") && !strings.HasPrefix(string(out), "Z")
}

package controlplane

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes make the kernel kill the child when this process ends, however it ends. They also keep a Ctrl-C at the
// terminal from the child: its owner gets it and stops the children in their order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitStopped returns when the child is stopped. The kernel reports a stop only when the last thread has stopped. From then on
// the child writes to no file. The status stays in place for the goroutine that reaps the child.
func waitStopped(pid int) error {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case err == nil && info.Code == codeStopped:
			return nil
		case errors.Is(err, unix.EINTR):
		case err == nil:
			return errors.New("the process has ended and cannot be stopped")
		default:
			return fmt.Errorf("the process has ended and cannot be stopped: %w", err)
		}
	}
}

// codeStopped is CLD_STOPPED of <signal.h>, which the unix package does not name.
const codeStopped = 5

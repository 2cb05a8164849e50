package main

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of every process below it whose parent has ended.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt daemons: %w", err)
	}
	return nil
}

// childAttributes let the kernel kill the test binary when this process ends.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

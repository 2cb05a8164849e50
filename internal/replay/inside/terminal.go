package inside

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fromTerminal reports whether the terminal sent a signal. Then the program has received it, too, because it is in the same
// process group.
func fromTerminal(caught os.Signal) bool {
	if caught != syscall.SIGINT && caught != syscall.SIGQUIT {
		return false
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer func() { _ = terminal.Close() }()
	foreground, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}

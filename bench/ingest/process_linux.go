package ingest

import "syscall"

// childAttributes make the kernel kill a child when this process ends. No other process would stop it.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

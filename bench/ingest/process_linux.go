package ingest

import "syscall"

// childAttributes make the kernel kill what is started when this process ends, however it ends: nobody would stop it else.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

//go:build unix && !linux

package controlplane

import "syscall"

// childAttributes keep a Ctrl-C at the terminal from the child. Only Linux can tie a child's life to its parent's. Here, a
// killed test does not stop its children.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// waitStopped does not wait. Outside Linux, reading the status would take it from the goroutine that reaps the child.
func waitStopped(int) error { return nil }

//go:build !linux

package main

import "syscall"

// adoptOrphans does nothing: only Linux lets a process adopt others.
func adoptOrphans() error { return nil }

func childAttributes() *syscall.SysProcAttr { return nil }

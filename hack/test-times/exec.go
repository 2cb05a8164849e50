package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// cpuLine is what execute adds to the output of a test binary.
const cpuLine = "test-times: %f CPU seconds, %f of daemons\n"

// execute runs a test binary to its end. It reaps all processes itself, also daemons whose parent has ended.
func execute(args []string) (code int, err error) {
	runtime.LockOSThread() // the kernel kills the child when the thread that started it ends
	if err := adoptOrphans(); err != nil {
		return 1, err
	}
	child, err := os.StartProcess(args[0], args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: childAttributes()})
	if err != nil {
		return 1, err
	}
	stop := forwardSignals(child)
	defer stop()
	status, cpu, daemons, err := reap(child.Pid)
	if err != nil {
		return 1, fmt.Errorf("wait for %s: %w", args[0], err)
	}
	fmt.Printf(cpuLine, cpu.Seconds(), daemons.Seconds())
	if status.Signaled() {
		return 128 + int(status.Signal()), fmt.Errorf("%s: %s", args[0], status.Signal())
	}
	return status.ExitStatus(), nil
}

// forwardSignals forwards the signals of the go command. A test that takes too long gets SIGQUIT, and prints its goroutines.
func forwardSignals(child *os.Process) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	go func() {
		defer close(done)
		for s := range signals {
			_ = child.Signal(s) // it may have ended
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
	}
}

// reap returns how the child ended, the time of its tree, and that of the daemons that ended before it.
func reap(child int) (status syscall.WaitStatus, cpu, daemons time.Duration, err error) {
	for {
		var ended syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &ended, 0, &usage)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return status, 0, 0, err
		case pid == child:
			return ended, cpuOf(usage), daemons, nil
		default:
			daemons += cpuOf(usage)
		}
	}
}

func cpuOf(usage syscall.Rusage) time.Duration {
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

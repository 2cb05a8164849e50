package measure

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of the times in /proc: USER_HZ is 100 on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// CPUOfTree adds up what a process has used, its children, and those of its children that have ended: a PostgreSQL server's main process has all
// others as its children. It needs /proc.
func CPUOfTree(root int) (time.Duration, error) {
	for {
		before, err := statOf(root)
		if err != nil {
			return 0, fmt.Errorf("CPU time is read from /proc, which only Linux has, of a process that runs: %w", err)
		}
		sum, err := cpuOfChildren(root)
		if err != nil {
			return 0, err
		}
		after, err := statOf(root)
		if err != nil {
			return 0, err
		}
		// A child that ended in between would be counted twice, or not at all.
		if after.ended == before.ended {
			return after.used + after.ended + sum, nil
		}
	}
}

// CPUOf is what one process has used, without its children.
func CPUOf(pid int) (time.Duration, error) {
	s, err := statOf(pid)
	return s.used, err
}

func cpuOfChildren(root int) (sum time.Duration, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		child, err := statOf(pid)
		switch {
		case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH):
			continue // it has ended
		case err != nil:
			return 0, err
		case child.parent == root:
			sum += child.used + child.ended
		}
	}
	return sum, nil
}

// CPUOfSelf is what this process has used.
func CPUOfSelf() (time.Duration, error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0, err
	}
	return time.Duration(own.Utime.Nano() + own.Stime.Nano()), nil
}

// A stat is what a process has used, and those of its children that have ended.
type stat struct {
	parent      int
	used, ended time.Duration
}

func statOf(pid int) (s stat, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, err
	}
	// The second field is a name, which may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return s, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	if s.parent, err = strconv.Atoi(string(fields[1])); err != nil {
		return s, err
	}
	for i, f := range fields[11:15] { // user and system, its own and then that of its ended children
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return s, err
		}
		if i < 2 {
			s.used += time.Duration(n) * tick
		} else {
			s.ended += time.Duration(n) * tick
		}
	}
	return s, nil
}

// Memory is the resident memory of a process, in bytes.
type Memory struct {
	Now, Peak int64
}

// MemoryOf reads the resident memory of a process and its high-water mark. getrusage would count the process that it was forked from.
func MemoryOf(pid int) (m Memory, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, fmt.Errorf("resident memory is read from /proc, which only Linux has, of a process that runs: %w", err)
	}
	for line := range bytes.Lines(status) {
		for prefix, into := range map[string]*int64{"VmHWM:": &m.Peak, "VmRSS:": &m.Now} {
			if rest, found := bytes.CutPrefix(line, []byte(prefix)); found {
				kib, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))), 10, 64)
				if err != nil {
					return m, fmt.Errorf("/proc/%d/status: %w", pid, err)
				}
				*into = kib << 10
			}
		}
	}
	if m.Peak == 0 {
		return m, fmt.Errorf("/proc/%d/status names no resident memory: the process has ended", pid)
	}
	return m, nil
}

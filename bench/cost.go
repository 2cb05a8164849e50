package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// A Cost is what several runs of one thing took. CPU is that of this process and of the server; it hardly depends on what else
// the machine does, where the time on the clock does. It is empty where the system does not tell.
type Cost struct {
	Wall Times `json:"wallMillis"`
	CPU  Times `json:"cpuMillis"`
}

// Times are of several runs.
type Times []time.Duration

func (t Times) median() time.Duration { return median(t) }

// MarshalJSON gives milliseconds.
func (t Times) MarshalJSON() ([]byte, error) {
	millis := make([]float64, len(t))
	for i, d := range t {
		millis[i] = float64(d.Microseconds()) / 1000
	}
	return json.Marshal(millis)
}

func median[T int64 | time.Duration](all []T) T {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// measured runs something and adds what it cost.
func (b *bench) measured(into *Cost, run func() (built, error)) (built, error) {
	runtime.GC() // what came before is not charged
	before, err := b.cpu()
	if err != nil {
		return built{}, err
	}
	started := time.Now()
	way, err := run()
	took := time.Since(started)
	if err != nil {
		return built{}, err
	}
	after, err := b.cpu()
	if err != nil {
		return built{}, err
	}
	into.Wall = append(into.Wall, took)
	if after > 0 {
		into.CPU = append(into.CPU, after-before)
	}
	return way, nil
}

// cpu gives what this process and the server have used so far, 0 if that is not known.
func (b *bench) cpu() (time.Duration, error) {
	if b.postmaster == 0 {
		return 0, nil
	}
	server, err := cpuOfServer(b.postmaster)
	if err != nil || server == 0 {
		return 0, err
	}
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0, err
	}
	return server + time.Duration(own.Utime.Nano()+own.Stime.Nano()), nil
}

// tick is the unit of the times in /proc: USER_HZ is 100 on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// cpuOfServer adds up a server's main process, its children, and the children that have ended, 0 if there is no /proc.
func cpuOfServer(postmaster int) (time.Duration, error) {
	entries, err := os.ReadDir("/proc")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		parent, used, err := statOf(pid)
		switch {
		case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH):
			continue // it has ended
		case err != nil:
			return 0, err
		case pid == postmaster || parent == postmaster:
			sum += used
		}
	}
	return sum, nil
}

func statOf(pid int) (parent int, used time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The second field is a name, which may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	if parent, err = strconv.Atoi(string(fields[1])); err != nil {
		return 0, 0, err
	}
	for _, f := range fields[11:15] { // user and system, its own and that of its ended children
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, 0, err
		}
		used += time.Duration(n) * tick
	}
	return parent, used, nil
}

package main

import (
	"encoding/json"
	"runtime"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/bench/measure"
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

// cpu gives what this process and the server have used so far, 0 if the server's process is not known.
func (b *bench) cpu() (time.Duration, error) {
	if b.postmaster == 0 {
		return 0, nil
	}
	server, err := measure.CPUOfTree(b.postmaster)
	if err != nil {
		return 0, err
	}
	own, err := measure.CPUOfSelf()
	return server + own, err
}

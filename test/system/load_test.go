package system_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var load = flag.Bool("load", false, "measure instead of testing (make load)")

// TestLoad measures; it asserts only that everything was recorded. The API server, etcd, PostgreSQL and the clients share the
// machine with the recorder. So the rate is the most that the API server can give there.
func TestLoad(t *testing.T) {
	if !*load {
		t.Skip("a measurement, not a test: make load")
	}
	w, recorder := recorded(t)
	truth := newGroundTruth(t, w)
	idle := usageOf(t, recorder.PID())
	started := time.Now()
	const measured = 40_000
	require.NoError(t, w.workload(t, measured).run(t.Context()))
	took := time.Since(started)
	truth.compare(t)
	used := usageOf(t, recorder.PID())

	var rows, batches int64
	var p50, p99 float64
	err := w.db.QueryRow(t.Context(), `SELECT sum(last_seq - first_seq + 1), count(*),
			percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM committed_at - observed_at)) * 1000,
			percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM committed_at - observed_at)) * 1000
		FROM kuberewind.batches WHERE last_seq >= first_seq AND observed_at >= $1`, started).Scan(&rows, &batches, &p50, &p99)
	require.NoError(t, err)
	cpu := used.cpu - idle.cpu
	fmt.Printf("writes            %d in %s: %.0f/s\n", measured, took.Round(time.Millisecond), measured/took.Seconds())
	fmt.Printf("rows              %d: %.0f/s in %d batches\n", rows, float64(rows)/took.Seconds(), batches)
	fmt.Printf("observed→commit   p50 %.1f ms, p99 %.1f ms (of batches, by their last delta)\n", p50, p99)
	fmt.Printf("recorder CPU      %s: %.0f µs a delta, %.1f %% of a core\n", cpu.Round(time.Millisecond),
		cpu.Seconds()*1e6/float64(rows), 100*cpu.Seconds()/took.Seconds())
	fmt.Printf("recorder memory   %d MiB at its peak\n", used.peak>>20)
	recorder.Terminate(t)
}

// usage is what a process has used so far.
type usage struct {
	cpu  time.Duration
	peak int64 // bytes resident
}

func usageOf(t *testing.T, pid int) usage {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	// The name in parentheses may hold spaces; utime and stime are the 14th and 15th fields, in ticks of 10 ms.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	ticks := number(t, fields[11]) + number(t, fields[12])
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	u := usage{cpu: time.Duration(ticks) * 10 * time.Millisecond}
	for line := range strings.Lines(string(status)) {
		if peak, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			u.peak = number(t, strings.Fields(peak)[0]) << 10
		}
	}
	return u
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

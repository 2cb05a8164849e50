package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"runtime"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/history"
)

// rebuildChild is the part of this program that rebuilds a cluster once and does nothing else. Its peak memory is that of a
// rebuild.
const rebuildChild = "rebuild"

// A rebuildJob is its task.
type rebuildJob struct {
	URL string
	Seq int64
}

// peakOfChild gives the peak of the resident memory of a process that rebuilds a cluster once.
func peakOfChild(ctx context.Context, url string, seq int64) (peak int64, err error) {
	err = measure.Output(ctx, rebuildChild, rebuildJob{url, seq}, &peak)
	return peak, err
}

func rebuildOnce(ctx context.Context, in *json.Decoder, out io.Writer) error {
	var j rebuildJob
	if err := in.Decode(&j); err != nil {
		return err
	}
	record, err := history.Open(ctx, j.URL, history.Options{})
	if err != nil {
		return err
	}
	defer record.Close()
	way, err := rebuild(ctx, record, history.AtSeq(j.Seq), history.RebuildOptions{})
	if err != nil {
		return err
	}
	memory, err := measure.MemoryOf(os.Getpid())
	if err != nil {
		return err
	}
	runtime.KeepAlive(way.snapshot)
	return json.NewEncoder(out).Encode(memory.Peak)
}

package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/recorder"
	"github.com/kuberewind/kuberewind/internal/telemetry"
)

// The names of the children.
const (
	recorderChild = "recorder"
	informerChild = "informer"
)

// Children are the parts of the suite that run in processes of their own.
func Children() measure.Children {
	return measure.Children{recorderChild: record, informerChild: inform}
}

// A job is a child's task. After that, each thing it reads is a question: whether to collect garbage, and answer with its
// usage, or only to answer. When there is nothing more to read, it ends.
type job struct {
	Kubeconfig string // path of a file
	Database   string
	Dir        string // of the recorder's own data
	Resources  []data.Resource
}

// logName is the recorder's log, in the folder of its data.
const logName = "recorder.log"

// usage is what a child has.
type usage struct {
	Heap   uint64
	Synced bool // of an informer: all lists are in its store
}

// now collects garbage, if asked to, and gives the memory of it back. The resident memory is then the needed one, and not the
// peak.
func now(collect, synced bool) usage {
	var m runtime.MemStats
	if collect {
		runtime.GC()
		debug.FreeOSMemory() // collects once more: what finalizers and pools held on to
		runtime.ReadMemStats(&m)
	}
	return usage{Heap: m.HeapAlloc, Synced: synced}
}

// A question is one, or why there are no more.
type question struct {
	collect bool
	err     error
}

// answer answers questions until there are none. It ends early with the error of what it is asked about.
func answer(in *json.Decoder, out io.Writer, synced func() bool, ended <-chan error) error {
	questions := make(chan question)
	go func() { // It ends with the process, or before.
		for {
			var q question
			q.err = in.Decode(&q.collect)
			questions <- q
			if q.err != nil {
				return
			}
		}
	}()
	for {
		select {
		case q := <-questions:
			if errors.Is(q.err, io.EOF) {
				return nil
			}
			if q.err != nil {
				return q.err
			}
			if err := json.NewEncoder(out).Encode(now(q.collect, synced())); err != nil {
				return err
			}
		case err := <-ended:
			return fmt.Errorf("it ended by itself: %w", err)
		}
	}
}

// record is the recorder as it is shipped, but for its flags and that it can be asked.
func record(ctx context.Context, in *json.Decoder, out io.Writer) error {
	var j job
	if err := in.Decode(&j); err != nil {
		return err
	}
	c := config.Default()
	c.Kubeconfig, c.Database, c.DataDir, c.ClusterName, c.Listen = j.Kubeconfig, j.Database, j.Dir, clusterName, ""
	level, err := c.Level()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	log, err := os.OpenFile(filepath.Join(j.Dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	go func() { ended <- recorder.Run(ctx, c, telemetry.NewLogger(log, c.LogFormat, level)) }()
	if err := answer(in, out, func() bool { return true }, ended); err != nil {
		return err
	}
	stop()
	return errors.Join(<-ended, log.Close())
}

// inform keeps all objects the usual way: with shared informers on the dynamic client, without event handlers.
func inform(ctx context.Context, in *json.Decoder, out io.Writer) error {
	var j job
	if err := in.Decode(&j); err != nil {
		return err
	}
	c, err := clientcmd.BuildConfigFromFlags("", j.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	informers := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	var synced []func() bool
	for _, r := range j.Resources {
		informer := informers.ForResource(schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}).Informer()
		synced = append(synced, informer.HasSynced)
	}
	informers.Start(ctx.Done())
	defer informers.Shutdown()
	defer stop()
	return answer(in, out, func() bool {
		for _, is := range synced {
			if !is() {
				return false
			}
		}
		return true
	}, nil)
}

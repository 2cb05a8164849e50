package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/recorder"
	internalserve "github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/telemetry"
)

// The names of the children.
const (
	recorderChild = "api-recorder"
	serverChild   = "api-server"
)

// Children are the parts of a program that measures this. Each ends when its standard input does.
func Children() measure.Children { return measure.Children{recorderChild: record, serverChild: serve} }

// A job is a child's task.
type job struct {
	Kubeconfig string // of a recorder
	Dir        string // of a recorder
	Database   string
}

// record is the recorder as it is shipped.
func record(ctx context.Context, in *json.Decoder, _ io.Writer) error {
	var j job
	ctx, stop, err := measure.UntilEnd(ctx, in, &j)
	if err != nil {
		return err
	}
	defer stop()
	c := config.Default()
	c.Kubeconfig, c.Database, c.DataDir, c.ClusterName, c.Listen = j.Kubeconfig, j.Database, j.Dir, "bench", ""
	level, err := c.Level()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(j.Dir, "recorder.log"))
	if err != nil {
		return err
	}
	return errors.Join(recorder.Run(ctx, c, telemetry.NewLogger(log, c.LogFormat, level)), log.Close())
}

// coldPath makes a server forget its rebuilt instants.
const coldPath = "/bench/cold"

// heapPath is kube-apiserver's too.
const heapPath = "/debug/pprof/heap"

// A served is what a client needs to know of a server.
type served struct {
	internalserve.Access
	UID string // of the cluster
}

// A handler can be made cold: then it has nothing of the record in memory.
type handler struct {
	record *history.Record
	now    atomic.Pointer[apiserver.Handler]
}

func (h *handler) cold() error {
	fresh, err := apiserver.New(apiserver.Options{Records: []*history.Record{h.record}})
	if err != nil {
		return err
	}
	if old := h.now.Swap(fresh); old != nil {
		old.Close()
	}
	return nil
}

// serve serves a record as "replay serve" does, and can be profiled.
func serve(ctx context.Context, in *json.Decoder, out io.Writer) error {
	var j job
	ctx, stop, err := measure.UntilEnd(ctx, in, &j)
	if err != nil {
		return err
	}
	defer stop()
	record, err := history.Open(ctx, j.Database, history.Options{})
	if err != nil {
		return err
	}
	defer record.Close()
	h := &handler{record: record}
	if err := h.cold(); err != nil {
		return err
	}
	defer func() { h.now.Load().Close() }()
	server, err := internalserve.Listen(internalserve.Options{Address: "127.0.0.1:0", Handler: h.mux(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer server.Close()
	if err := json.NewEncoder(out).Encode(served{Access: server.Access(), UID: record.Cluster().UID}); err != nil {
		return err
	}
	return server.Serve(ctx)
}

func (h *handler) mux() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(heapPath, pprof.Handler("heap"))
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc(coldPath, func(w http.ResponseWriter, _ *http.Request) {
		if err := h.cold(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { h.now.Load().ServeHTTP(w, r) })
	return mux
}

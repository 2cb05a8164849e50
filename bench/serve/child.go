package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"time"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
)

// ChildName is the name under which a program has [Child].
const ChildName = "serve"

// Job is what a child serves.
type Job struct {
	Source  data.Source
	Options Options
}

// hello is what the child says when it serves: how clients find it, and where it is told what to do.
type hello struct {
	Kubeconfig string
	Control    string
}

// Child is a server in a process of its own. It serves until it is ended.
func Child(ctx context.Context, in *json.Decoder, out io.Writer) (err error) {
	var job Job
	if err := in.Decode(&job); err != nil {
		return err
	}
	set, err := job.Source.Open()
	if err != nil {
		return err
	}
	s, err := Start(set, job.Options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /go", func(http.ResponseWriter, *http.Request) { s.Go() })
	mux.HandleFunc("GET /progress", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, s.Progress()) })
	mux.HandleFunc("GET /times", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, s.Times()) })
	control := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = control.Close() })()
	if err := json.NewEncoder(out).Encode(hello{string(s.Kubeconfig()), "http://" + listener.Addr().String()}); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := control.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Process is a server in a process of its own.
type Process struct {
	PID        int
	Kubeconfig []byte
	control    string
	client     *http.Client
	cmd        *exec.Cmd
	cancel     context.CancelFunc
}

// Run starts a process that serves; this program has to have Child. The caller calls Close, and removes Options.Dir, which has to be set.
func Run(ctx context.Context, job Job) (_ *Process, err error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &Process{cancel: cancel, client: &http.Client{Transport: &http.Transport{}}}
	if p.cmd, err = measure.Command(ctx, ChildName, job); err != nil {
		cancel()
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	p.PID = p.cmd.Process.Pid
	var said hello
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		p.Close()
		return nil, fmt.Errorf("the server said nothing: %w", err)
	}
	p.Kubeconfig, p.control = []byte(said.Kubeconfig), said.Control
	return p, nil
}

// Close ends the process.
func (p *Process) Close() {
	p.cancel()
	_ = p.cmd.Wait() // it was killed
	p.client.CloseIdleConnections()
}

// Go lets events be written.
func (p *Process) Go(ctx context.Context) error {
	return p.ask(ctx, http.MethodPost, "/go", nil)
}

// Progress says how far the history is.
func (p *Process) Progress(ctx context.Context) (found Progress, err error) {
	return found, p.ask(ctx, http.MethodGet, "/progress", &found)
}

// Times gives all events that were written, resource by resource.
func (p *Process) Times(ctx context.Context) (all []Written, err error) {
	return all, p.ask(ctx, http.MethodGet, "/times", &all)
}

func (p *Process) ask(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, p.control+path, nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

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

// hello is the child's message when it serves: its address for clients, and its address for commands.
type hello struct {
	Kubeconfig string
	Control    string
}

// Child is a server in its own process. It serves until it is ended, or until its standard input is closed: also when the process that started
// it was killed.
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // It ends with the process, or before.
		var more json.RawMessage
		_ = in.Decode(&more) // nothing comes but the end
		cancel()
	}()
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
	stdin      io.WriteCloser // the process ends when it is closed
	cancel     context.CancelFunc
}

// Run starts a process that serves; this program has to have Child. The caller calls Close, and removes Options.Dir, which has to be set.
func Run(ctx context.Context, job Job) (_ *Process, err error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &Process{cancel: cancel, client: &http.Client{Transport: &http.Transport{}}}
	out, err := p.start(ctx, job)
	if err != nil {
		cancel()
		return nil, err
	}
	var said hello
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		p.Close()
		return nil, fmt.Errorf("the server said nothing: %w", err)
	}
	p.Kubeconfig, p.control = []byte(said.Kubeconfig), said.Control
	return p, nil
}

// start starts the process and sends it the source of the data. Its standard input stays open for as long as this process is there.
func (p *Process) start(ctx context.Context, job Job) (out io.Reader, err error) {
	if p.cmd, err = measure.Command(ctx, ChildName, job); err != nil {
		return nil, err
	}
	source := p.cmd.Stdin
	p.cmd.Stdin = nil
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if out, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.PID = p.cmd.Process.Pid
	if _, err := io.Copy(p.stdin, source); err != nil {
		p.Close()
		return nil, fmt.Errorf("send the source of the data to the server: %w", err)
	}
	return out, nil
}

// Close ends the process.
func (p *Process) Close() {
	p.cancel()
	_ = p.cmd.Wait() // it was killed
	p.client.CloseIdleConnections()
}

// Go lets events be written: those before Options.Gate, and, called again, the others.
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

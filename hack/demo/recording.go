package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"

	"github.com/kuberewind/kuberewind/internal/progress"
)

// demo holds the paths of the programs and data, and the state of the scenario.
type demo struct {
	shown               *progress.Progress
	recorder, replay    string
	dataDir, cluster    string
	kubectl, kubeconfig string
	before              string // the instant before the Deployment was deleted
}

// recording is a running recorder.
type recording struct {
	cmd   *exec.Cmd
	ended chan error
}

// record starts a recorder and returns when it follows the cluster.
func (d *demo) record(ctx context.Context) (*recording, error) {
	cmd := exec.Command(d.recorder, "run", "--kubeconfig", d.kubeconfig, "--cluster-name", d.cluster, "--data-dir", d.dataDir,
		"--listen", "127.0.0.1:0", "--log-format", "json")
	logs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	// Ctrl-C goes to the demo, which then stops the recorder and waits for its last commit.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &recording{cmd: cmd, ended: make(chan error, 1)}
	ready := make(chan struct{})
	go r.read(logs, ready, d.shown)
	select {
	case <-ready:
		return r, nil
	case err := <-r.ended:
		return nil, fmt.Errorf("the recorder ended: %w\nif another build made %s, delete that folder and run the demo again", err, d.dataDir)
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), r.stop())
	}
}

// read shows warnings, errors and the line "recording" of the recorder's log.
func (r *recording) read(logs io.Reader, ready chan<- struct{}, shown *progress.Progress) {
	lines := bufio.NewScanner(logs)
	lines.Buffer(nil, 1<<20)
	var last []string
	for lines.Scan() {
		var entry struct{ Level, Msg string }
		text := lines.Text()
		last = append(last, text)
		if json.Unmarshal([]byte(text), &entry) != nil || entry.Level == "WARN" || entry.Level == "ERROR" {
			shown.Say("%s\n", text)
		}
		shown.Update("%s", entry.Msg)
		if entry.Msg == "recording" && ready != nil {
			shown.Say("%s\n", text)
			close(ready)
			ready = nil
		}
	}
	err := r.cmd.Wait()
	if ready != nil {
		err = fmt.Errorf("%w; its log:\n%s", err, strings.Join(last, "\n"))
	}
	r.ended <- err
}

// stop sends SIGTERM and waits until the recorder has committed everything and ended.
func (r *recording) stop() error {
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := <-r.ended; err != nil {
		return fmt.Errorf("the recorder did not stop cleanly: %w", err)
	}
	return nil
}

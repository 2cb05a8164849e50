package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// A subject is a process that records.
type subject struct {
	cmd   *exec.Cmd
	said  *json.Decoder // of children
	ended chan struct{} // closed when it has ended
	err   error         // how; set before ended is closed
	log   *os.File      // of a recorder
}

// start starts a process. What it says goes to reader, if there is one, which has to be read to its end.
func start(cmd *exec.Cmd) (*subject, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &subject{cmd: cmd, ended: make(chan struct{})}
	go func() {
		s.err = cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

// procs lets the process under test use two cores.
const procs = "GOMAXPROCS=2"

// newChild starts a part of this program.
func newChild(ctx context.Context, name string, job any) (*subject, error) {
	cmd, err := measure.Command(ctx, name, job)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, procs)
	reader, writer := io.Pipe()
	cmd.Stdout = writer
	s, err := start(cmd)
	if err != nil {
		return nil, err
	}
	go func() {
		<-s.ended
		_ = writer.CloseWithError(fmt.Errorf("%s has ended: %w", name, errors.Join(s.err, io.EOF))) // never fails
	}()
	s.said = json.NewDecoder(reader)
	return s, nil
}

// logName is the recorder's log.
const logName = "recorder.log"

// newRecorder starts the program that is measured. It listens at an address, or not at all. Its log is in dir.
func newRecorder(ctx context.Context, program, kubeconfig, database, dir, listen string) (*subject, error) {
	log, err := os.Create(filepath.Join(dir, logName))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "run", "--kubeconfig", kubeconfig, "--database", database, "--data-dir", dir, "--cluster-name", "bench",
		"--listen", listen, "--log-format", "json")
	cmd.Env = append(os.Environ(), procs)
	cmd.Stderr, cmd.Stdout = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	s, err := start(cmd)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	s.log = log
	return s, nil
}

// close ends the process with its context, which has to be cancelled, and waits for it.
func (s *subject) close() {
	<-s.ended
	if s.log != nil {
		_ = s.log.Close() // nobody reads it any more
	}
}

// poll is how often a recorder's head is looked at. It is no part of what is measured: commits are dated by the server.
const poll = 100 * time.Millisecond

// await returns when a recorder has so many deltas on record, or a child has told of so many rows.
func (s *subject) await(ctx context.Context, db *pgx.Conn, rows int) error {
	if s.said != nil {
		var m mark
		for m.Rows < rows {
			if err := s.said.Decode(&m); err != nil {
				return err
			}
		}
		return nil
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		var made bool
		if err := db.QueryRow(ctx, `SELECT to_regclass('kuberewind.heads') IS NOT NULL`).Scan(&made); err != nil {
			return err
		}
		var seq int
		if made {
			if err := db.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM kuberewind.heads`).Scan(&seq); err != nil {
				return err
			}
		}
		if seq >= rows {
			return nil
		}
		select {
		case <-ticker.C:
		case <-s.ended:
			return s.failure()
		case <-ctx.Done():
			return fmt.Errorf("%d of %d deltas are on record: %w", seq, rows, ctx.Err())
		}
	}
}

// failure says how a recorder ended, with the end of its log.
func (s *subject) failure() error {
	text, err := os.ReadFile(s.log.Name())
	return fmt.Errorf("the recorder ended (%w), and said last: %s", errors.Join(s.err, err), text[max(0, len(text)-2000):])
}

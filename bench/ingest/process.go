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
	cmd    *exec.Cmd
	said   *json.Decoder  // of children
	output *io.PipeReader // of children: what said reads
	ended  chan struct{}  // closed when it has ended
	err    error          // how; set before ended is closed
	log    *os.File       // of a recorder
}

// start starts a process that ends with this one.
func start(cmd *exec.Cmd) (*subject, error) {
	cmd.SysProcAttr = childAttributes()
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
	s.output, s.said = reader, json.NewDecoder(reader)
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

// close waits for the process, whose context has to be cancelled. Its later output is not read. It may be called again.
func (s *subject) close() {
	if s.output != nil {
		_ = s.output.Close() // never fails; without it, a process that forwards unread output would wait for ever
	}
	<-s.ended
	if s.log != nil {
		_ = s.log.Close() // no reader is left
	}
}

// poll is how often a recorder's head is looked at. The server dates the commits, so no time on the clock depends on it. The
// CPU time of looking is PostgreSQL's and counts as its own: some 0.1 ms each, a two-thousandth of a core.
const poll = 250 * time.Millisecond

// await returns when a recorder has so many deltas on record, or a child has reported so many rows, and says how many there
// are. Later rows have larger numbers. Rows that a recorder stores again at midnight come on top.
func (s *subject) await(ctx context.Context, db *pgx.Conn, rows int) (last int, err error) {
	if s.said != nil {
		var m mark
		for m.Rows < rows {
			if err := s.said.Decode(&m); err != nil {
				return 0, err
			}
		}
		return m.Rows, nil
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	h := head{db: db}
	for {
		if err := h.look(ctx, rows); err != nil {
			return 0, err
		}
		if h.seq >= rows+h.resynced {
			return h.seq, nil
		}
		select {
		case <-ticker.C:
		case <-s.ended:
			return 0, s.failure()
		case <-ctx.Done():
			return 0, fmt.Errorf("%d of %d deltas are on record: %w", h.seq-h.resynced, rows, ctx.Err())
		}
	}
}

// A head is how far a record is, as far as was looked.
type head struct {
	db       *pgx.Conn
	made     bool // there is a record
	seq      int
	resynced int // of these deltas: those that only store again what was on record, because another day has begun
}

// look reads how far the recorder is. Only when that may be far enough, it counts the deltas that were stored again. The first
// day has none.
func (h *head) look(ctx context.Context, wanted int) error {
	if !h.made {
		if err := h.db.QueryRow(ctx, `SELECT to_regclass('kuberewind.heads') IS NOT NULL`).Scan(&h.made); err != nil || !h.made {
			return err
		}
	}
	if err := h.db.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM kuberewind.heads`).Scan(&h.seq); err != nil || h.seq < wanted+h.resynced {
		return err
	}
	return h.db.QueryRow(ctx, `
		SELECT count(*) FROM kuberewind.deltas_data
		WHERE `+storedAgain+` AND seq <= $1 AND observed_at >= ((SELECT min(day) FROM kuberewind.days) + 1)::timestamp AT TIME ZONE 'UTC'`, h.seq).Scan(&h.resynced)
}

// failure says how a recorder ended, with the end of its log.
func (s *subject) failure() error {
	text, err := os.ReadFile(s.log.Name())
	return fmt.Errorf("the recorder ended (%w), and said last: %s", errors.Join(s.err, err), text[max(0, len(text)-2000):])
}

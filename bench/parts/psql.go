package parts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// psql runs commands in a psql that is connected already. So its start counts neither on the clock, since psql times its
// commands itself, nor as PostgreSQL's CPU. The client's CPU time includes it: some milliseconds.
func (s *sinkRun) psql(ctx context.Context, database string, commands ...string) (c cost, err error) {
	cmd, err := s.server.PSQL(ctx, database)
	if err != nil {
		return c, err
	}
	p, err := startPSQL(cmd)
	if err != nil {
		return c, err
	}
	c, err = p.cost(s.server, commands)
	if err := errors.Join(err, p.end()); err != nil {
		return c, err
	}
	c.client = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return c, nil
}

// A psql is one that waits for commands.
type psql struct {
	cmd        *exec.Cmd
	in         io.WriteCloser
	out        *bufio.Scanner
	complaints bytes.Buffer
}

// startPSQL starts one. The caller calls end.
func startPSQL(cmd *exec.Cmd) (*psql, error) {
	p := &psql{cmd: cmd}
	cmd.Stderr = &p.complaints
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	return p, cmd.Start()
}

// end has it end, and says what it complained about.
func (p *psql) end() error {
	_ = p.in.Close() // it may have ended
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", p.cmd, err, bytes.TrimSpace(p.complaints.Bytes()))
	}
	return nil
}

func (p *psql) cost(server *measure.Server, commands []string) (c cost, err error) {
	if _, err := p.ask(`\timing on`, "Timing is on"); err != nil {
		return c, err
	}
	before, err := measure.CPUOfTree(server.PID)
	if err != nil {
		return c, err
	}
	for _, command := range commands {
		told, err := p.ask(command, "Time: ")
		if err != nil {
			return c, err
		}
		number, _, _ := strings.Cut(told, " ms")
		millis, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return c, err
		}
		c.clock += time.Duration(millis * float64(time.Millisecond))
	}
	after, err := measure.CPUOfTree(server.PID)
	if err != nil {
		return c, err
	}
	c.server = after - before
	return c, err
}

// ask gives it a command, and waits for a line that begins with an answer. It gives the rest of that.
func (p *psql) ask(command, answer string) (rest string, err error) {
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return "", err
	}
	for p.out.Scan() {
		if rest, found := strings.CutPrefix(p.out.Text(), answer); found {
			return rest, nil
		}
	}
	return "", errors.Join(fmt.Errorf("psql does not answer %q", command), p.out.Err())
}

// Command silence runs another program and measures the longest time without output.
//
//	silence [-max 5s] COMMAND [ARGUMENT...]
//
// It passes the output on. At the end it prints the longest time without output, and the line before that. It fails if the time
// is longer than -max, or if the program fails.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	limit := flag.Duration("max", 0, "longest `time` without output (0: any)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *limit, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "silence:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, limit time.Duration, args []string) error {
	if len(args) == 0 {
		return errors.New("no command to run")
	}
	heard := &listener{out: out, at: time.Now()}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// Both streams have one writer, because os/exec then calls it from one goroutine only.
	cmd.Stdout, cmd.Stderr = heard, heard
	// Ctrl-C reaches the program directly, because it is in the terminal's process group, too.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	err := cmd.Run()
	heard.note(time.Now())
	fmt.Fprintf(out, "silence: %s at most, after %q\n", heard.longest.Round(100*time.Millisecond), heard.before)
	if err == nil && limit > 0 && heard.longest > limit {
		err = fmt.Errorf("the program printed nothing for %s; the limit is %s", heard.longest.Round(100*time.Millisecond), limit)
	}
	return err
}

// listener measures the time between writes.
type listener struct {
	out     io.Writer
	at      time.Time // time of the last write
	last    string    // last line
	longest time.Duration
	before  string // the last line before the longest silence
}

func (l *listener) Write(text []byte) (int, error) {
	l.note(time.Now())
	l.last = lastLine(text, l.last)
	return l.out.Write(text)
}

func (l *listener) note(now time.Time) {
	if silence := now.Sub(l.at); silence > l.longest {
		l.longest, l.before = silence, l.last
	}
	l.at = now
}

// lastLine returns the last line of text that is not empty, or else the previous one.
func lastLine(text []byte, before string) string {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return before
	}
	return string(trimmed[bytes.LastIndexByte(trimmed, '\n')+1:])
}

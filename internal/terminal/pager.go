package terminal

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// A Pager is a writer between a command and the terminal. It holds back text until the text is longer than the screen. Then
// it starts a program that shows the text, like git.
type Pager struct {
	ctx      context.Context // the command's: when it ends, no more text comes
	ended    func()          // called if the program ends before the text
	terminal *os.File
	command  []string
	environ  []string

	mu       sync.Mutex // protects the fields below, except gone
	text     bytes.Buffer
	late     []func() // writes to standard error after the text
	rows     int
	pipe     io.WriteCloser // nil until the program runs
	finished bool           // the command has ended
	early    bool           // the program ended before the command
	gone     chan struct{}  // closed when the program has ended
}

// Program returns the user's pager: REPLAY_PAGER, PAGER, or less. It returns nil if that program does not exist or is cat,
// or if PAGER is empty.
func Program(environ []string) []string {
	chosen := "less -FRX"
	for _, name := range []string{"PAGER", "REPLAY_PAGER"} {
		for _, pair := range environ {
			if value, ok := strings.CutPrefix(pair, name+"="); ok && (name == "PAGER" || value != "") {
				chosen = value
			}
		}
	}
	words := strings.Fields(chosen)
	if len(words) == 0 || words[0] == "cat" {
		return nil
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil
	}
	return words
}

// NewPager returns a pager that uses a program. The program starts only when there is enough text.
func NewPager(ctx context.Context, terminal *os.File, program, environ []string, ended func()) *Pager {
	// Like git: text that fits on the screen needs no key, colours work, and the text stays on the screen.
	if !slices.ContainsFunc(environ, func(pair string) bool { return strings.HasPrefix(pair, "LESS=") }) {
		environ = append(slices.Clone(environ), "LESS=FRX")
	}
	return &Pager{ctx: ctx, ended: ended, terminal: terminal, command: program, environ: environ, gone: make(chan struct{})}
}

// Fd returns the terminal's file descriptor, so that a caller can read its width.
func (p *Pager) Fd() uintptr { return p.terminal.Fd() }

// Write shows or holds back text.
func (p *Pager) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pipe != nil {
		return len(text), p.show(text)
	}
	p.text.Write(text)
	width, height, err := term.GetSize(int(p.terminal.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	p.rows += rowsOf(text, width)
	if p.rows < height {
		return len(text), nil
	}
	if err := p.start(); err != nil {
		return 0, err
	}
	err = p.show(p.text.Bytes())
	p.text.Reset()
	return len(text), err
}

// show writes text to the program. If the write fails while the command runs, the program has ended. The caller must hold
// p.mu.
func (p *Pager) show(text []byte) error {
	_, err := p.pipe.Write(text)
	p.early = p.early || err != nil && p.ctx.Err() == nil
	return err
}

// rowsOf returns about how many rows of the screen a text needs.
func rowsOf(text []byte, width int) (rows int) {
	for line := range bytes.Lines(text) {
		if bytes.HasSuffix(line, []byte("\n")) {
			rows++
		}
		rows += max(0, utf8.RuneCount(line)-2) / width
	}
	return rows
}

// start starts the program. The caller must hold p.mu.
func (p *Pager) start() error {
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.environ, p.terminal, p.terminal
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.pipe = pipe
	// A command that must end may be blocked in a write to the pager.
	stop := context.AfterFunc(p.ctx, func() { _ = pipe.Close() })
	go func() {
		_ = cmd.Wait() // the exit code does not matter: the user closed the pager
		stop()
		p.mu.Lock()
		p.early = p.early || !p.finished
		early := p.early
		p.mu.Unlock()
		if early {
			p.ended()
		}
		close(p.gone)
	}()
	return nil
}

// Close shows the held text, or waits until the user closes the program. It reports whether that was before the end of the
// text. The caller must not write afterwards.
func (p *Pager) Close() (early bool, err error) {
	p.mu.Lock()
	p.finished = true
	pipe := p.pipe
	p.mu.Unlock()
	if pipe == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		_, err = p.terminal.Write(p.text.Bytes())
	} else {
		_ = pipe.Close() // the pipe may be closed already
		// Ctrl-C is now for the pager. If it ended this program, both the shell and the pager would read the terminal.
		signal.Ignore(os.Interrupt)
		<-p.gone
		signal.Reset(os.Interrupt)
	}
	for _, write := range p.late {
		write()
	}
	return p.early, err
}

// After returns a writer to standard error. It shows what is written after the beginning of the text only after the whole
// text.
func (p *Pager) After(out io.Writer) io.Writer { return &after{p, out, true} }

// Before returns a writer to standard error for output that is only useful before the text, such as progress.
func (p *Pager) Before(out io.Writer) io.Writer { return &after{p, out, false} }

type after struct {
	pager *Pager
	out   io.Writer
	keep  bool
}

// Fd returns the terminal's file descriptor.
func (a *after) Fd() uintptr { return a.pager.Fd() }

func (a *after) Write(text []byte) (int, error) {
	a.pager.mu.Lock()
	defer a.pager.mu.Unlock()
	if a.pager.pipe == nil && a.pager.text.Len() == 0 {
		return a.out.Write(text)
	}
	if a.keep {
		kept := bytes.Clone(text)
		a.pager.late = append(a.pager.late, func() { _, _ = a.out.Write(kept) }) // an error of the terminal cannot be handled
	}
	return len(text), nil
}

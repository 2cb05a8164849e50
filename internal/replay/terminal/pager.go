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

// A Pager stands between a command and the terminal. It holds back text until that is longer than the screen, and then starts a program
// to show it, as git does.
type Pager struct {
	ctx      context.Context // of the command: when it ends, no more text comes
	ended    func()          // told when the program ends before the text
	terminal *os.File
	command  []string
	environ  []string

	mu       sync.Mutex // protects what follows, but gone
	text     bytes.Buffer
	late     []func() // what is to be written to standard error after the text
	rows     int
	pipe     io.WriteCloser // nil until the program runs
	finished bool           // the command has ended
	early    bool           // the program has ended before
	gone     chan struct{}  // closed when the program has ended
}

// Program is the pager that a person wants: REPLAY_PAGER, else PAGER, else less. It is empty if there is none, or if it is cat.
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

// NewPager makes a pager of a program. Nothing starts before there is enough to show.
func NewPager(ctx context.Context, terminal *os.File, program, environ []string, ended func()) *Pager {
	// As git sets it too: a screenful needs no key, colours are shown, and the text stays.
	if !slices.ContainsFunc(environ, func(pair string) bool { return strings.HasPrefix(pair, "LESS=") }) {
		environ = append(slices.Clone(environ), "LESS=FRX")
	}
	return &Pager{ctx: ctx, ended: ended, terminal: terminal, command: program, environ: environ, gone: make(chan struct{})}
}

// Fd is the terminal's, so that a caller can ask for its width.
func (p *Pager) Fd() uintptr { return p.terminal.Fd() }

// Write takes text for the person.
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

// show gives text to the program. If the program takes no more, it has ended, unless the command has. It needs p.mu.
func (p *Pager) show(text []byte) error {
	_, err := p.pipe.Write(text)
	p.early = p.early || err != nil && p.ctx.Err() == nil
	return err
}

// rowsOf is about how many rows of a screen a text takes.
func rowsOf(text []byte, width int) (rows int) {
	for line := range bytes.Lines(text) {
		if bytes.HasSuffix(line, []byte("\n")) {
			rows++
		}
		rows += max(0, utf8.RuneCount(line)-2) / width
	}
	return rows
}

// start starts the program. It needs p.mu.
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
	// A command that has to end may be stuck in writing to a person who reads.
	stop := context.AfterFunc(p.ctx, func() { _ = pipe.Close() })
	go func() {
		_ = cmd.Wait() // however it ended, the person has seen enough
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

// Close shows what was held back, or waits until the person ends the program. It reports whether that was before the text ended. No text
// may come after it.
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
		_ = pipe.Close() // it may be closed already
		// Ctrl-C is the program's now: it would leave the terminal to two at once.
		signal.Ignore(os.Interrupt)
		<-p.gone
		signal.Reset(os.Interrupt)
	}
	for _, write := range p.late {
		write()
	}
	return p.early, err
}

// After gives a writer to standard error: what is written after text has come is shown after all of it.
func (p *Pager) After(out io.Writer) io.Writer { return &after{p, out, true} }

// Before gives a writer to standard error for what makes no sense once text has come, such as progress.
func (p *Pager) Before(out io.Writer) io.Writer { return &after{p, out, false} }

type after struct {
	pager *Pager
	out   io.Writer
	keep  bool
}

// Fd is that of the terminal.
func (a *after) Fd() uintptr { return a.pager.Fd() }

func (a *after) Write(text []byte) (int, error) {
	a.pager.mu.Lock()
	defer a.pager.mu.Unlock()
	if a.pager.pipe == nil && a.pager.text.Len() == 0 {
		return a.out.Write(text)
	}
	if a.keep {
		kept := bytes.Clone(text)
		a.pager.late = append(a.pager.late, func() { _, _ = a.out.Write(kept) }) // on a terminal, nothing can be done about it
	}
	return len(text), nil
}

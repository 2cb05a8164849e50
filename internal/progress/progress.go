// Package progress prints the steps of a program for people. It repeats a long step, because a silent program seems to hang. [Watch]
// starts one goroutine, and returns a function that ends it.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// longestSilence is the longest time without a line. The demo promises a line every five seconds.
const longestSilence = 4 * time.Second

// Progress prints lines for people. After each longestSilence without a line, it prints the step again with the time that it has taken.
type Progress struct {
	mu    sync.Mutex // protects the fields below
	out   io.Writer
	step  string // the current step, "" for none
	note  string // the progress of the step
	since time.Time
	spoke time.Time
}

// Watch returns a Progress. Its goroutine ends when stop is called.
func Watch(out io.Writer) (p *Progress, stop func()) {
	p = &Progress{out: out, spoke: time.Now()}
	ended, quit := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		p.pulse(quit)
	}()
	return p, func() { close(quit); <-ended }
}

func (p *Progress) pulse(quit <-chan struct{}) {
	ticker := time.NewTicker(longestSilence / 8)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.repeat()
		case <-quit:
			return
		}
	}
}

func (p *Progress) repeat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Print one tick early, because the next tick would be too late.
	if p.step == "" || time.Since(p.spoke) < longestSilence*7/8 {
		return
	}
	text := p.step
	if p.note != "" {
		text += ": " + p.note
	}
	p.print("%s (%s)\n", text, time.Since(p.since).Round(time.Second))
}

// Begin prints a step and makes it the current one.
func (p *Progress) Begin(format string, values ...any) {
	step := fmt.Sprintf(format, values...)
	p.Say("%s\n", step)
	p.Step(step)
}

// Step makes a step the current one without printing it. It is for steps that are mostly short.
func (p *Progress) Step(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.note, p.since = step, "", time.Now()
}

// Update sets the progress of the step. It prints nothing.
func (p *Progress) Update(format string, values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note = fmt.Sprintf(format, values...)
}

// End prints the result of the step and the time that it took.
func (p *Progress) End(format string, values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print("%s in %s\n", fmt.Sprintf(format, values...), time.Since(p.since).Round(100*time.Millisecond))
	p.step = ""
}

// Say prints a text.
func (p *Progress) Say(format string, values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(format, values...)
}

// Write prints the output of a program.
func (p *Progress) Write(text []byte) (int, error) {
	p.Say("%s", text)
	return len(text), nil
}

// print prints a text. The caller holds p.mu. It ignores write errors: the program must go on even if its output is closed.
func (p *Progress) print(format string, values ...any) {
	p.spoke = time.Now()
	_, _ = fmt.Fprintf(p.out, format, values...)
}

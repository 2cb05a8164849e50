// Package progress tells a person what a program does, and never stays silent for long: a silent first run seems to hang.
// [Watch] starts one goroutine, which ends with the function that it returns.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// longestSilence is how long a step says nothing. The demo promises a line every five seconds.
const longestSilence = 4 * time.Second

// Progress is where lines for a person go. After each longestSilence without a line, it repeats the step and how long it takes.
type Progress struct {
	mu    sync.Mutex // guards what follows
	out   io.Writer
	step  string // what is being done, "" if nothing
	note  string // how far the step is
	since time.Time
	spoke time.Time
}

// Watch makes a Progress whose goroutine ends with stop.
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
	// One tick early: the next one would be too late.
	if p.step == "" || time.Since(p.spoke) < longestSilence*7/8 {
		return
	}
	text := p.step
	if p.note != "" {
		text += ": " + p.note
	}
	p.print("%s (%s)\n", text, time.Since(p.since).Round(time.Second))
}

// Begin says what is done from now on.
func (p *Progress) Begin(format string, values ...any) {
	step := fmt.Sprintf(format, values...)
	p.Say("%s\n", step)
	p.Step(step)
}

// Step is Begin without a line: of a step that is mostly short.
func (p *Progress) Step(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.note, p.since = step, "", time.Now()
}

// Update changes how far the step is. It prints nothing.
func (p *Progress) Update(format string, values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note = fmt.Sprintf(format, values...)
}

// End says what came of the step, and how long it took.
func (p *Progress) End(format string, values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print("%s in %s\n", fmt.Sprintf(format, values...), time.Since(p.since).Round(100*time.Millisecond))
	p.step = ""
}

// Say prints a text as it is.
func (p *Progress) Say(format string, values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(format, values...)
}

// Write passes on what a program says.
func (p *Progress) Write(text []byte) (int, error) {
	p.Say("%s", text)
	return len(text), nil
}

// print needs p.mu. That nobody may be reading is no reason to fail.
func (p *Progress) print(format string, values ...any) {
	p.spoke = time.Now()
	_, _ = fmt.Fprintf(p.out, format, values...)
}

package output

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/telemetry"
)

const (
	// progressAfter is how long work may take without a word.
	progressAfter = time.Second
	// progressEvery is how often a line is written where nobody watches a bar.
	progressEvery = 10 * time.Second
)

// Progress tells a person how far long work is: a bar on a terminal, lines elsewhere, and nothing if it is soon done. It is for one
// goroutine at a time.
type Progress struct {
	out    io.Writer
	title  string
	began  time.Time
	said   time.Time
	stage  string
	bar    *progressbar.ProgressBar
	silent bool
}

// NewProgress begins to time work. Nothing is written if it is silent.
func NewProgress(out io.Writer, title string, silent bool) *Progress {
	return &Progress{out: out, title: title, began: time.Now(), silent: silent}
}

// Tell is for RebuildOptions.Progress and its like.
func (p *Progress) Tell(at history.Progress) {
	if p.silent || time.Since(p.began) < progressAfter {
		return
	}
	if telemetry.IsTerminal(p.out) {
		p.draw(at)
		return
	}
	if time.Since(p.said) < progressEvery {
		return
	}
	p.said = time.Now()
	text := fmt.Sprintf("%s: %s, %d", p.title, at.Stage, at.Done)
	if at.Total > 0 {
		text += fmt.Sprintf(" of %d", at.Total)
	}
	fmt.Fprintln(p.out, text)
}

func (p *Progress) draw(at history.Progress) {
	if p.bar == nil || p.stage != at.Stage {
		p.End()
		total := at.Total
		if total == 0 {
			total = -1 // a spinner
		}
		p.stage = at.Stage
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.out), progressbar.OptionSetDescription(p.title+": "+at.Stage),
			progressbar.OptionClearOnFinish(), progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond))
	}
	_ = p.bar.Set64(at.Done) // on a terminal, nothing can be done about it
}

// End takes the bar off the terminal.
func (p *Progress) End() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

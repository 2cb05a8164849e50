package replay

import (
	"fmt"
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

// progress tells a person how far long work is: a bar on a terminal, lines elsewhere, and nothing if it is soon done. It is for one
// goroutine at a time.
type progress struct {
	env    *Env
	title  string
	began  time.Time
	said   time.Time
	stage  string
	bar    *progressbar.ProgressBar
	silent bool
}

func (e *Env) progress(title string) *progress {
	return &progress{env: e, title: title, began: time.Now(), silent: e.Quiet}
}

// tell is for RebuildOptions.Progress and its like.
func (p *progress) tell(at history.Progress) {
	if p.silent || time.Since(p.began) < progressAfter {
		return
	}
	if telemetry.IsTerminal(p.env.IOStreams.ErrOut) {
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
	fmt.Fprintln(p.env.IOStreams.ErrOut, text)
}

func (p *progress) draw(at history.Progress) {
	if p.bar == nil || p.stage != at.Stage {
		p.end()
		total := at.Total
		if total == 0 {
			total = -1 // a spinner
		}
		p.stage = at.Stage
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.env.IOStreams.ErrOut), progressbar.OptionSetDescription(p.title+": "+at.Stage),
			progressbar.OptionClearOnFinish(), progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond))
	}
	_ = p.bar.Set64(at.Done) // on a terminal, nothing can be done about it
}

// end takes the bar off the terminal.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

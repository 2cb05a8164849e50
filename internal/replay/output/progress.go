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
	// progressAfter is the time before the first output.
	progressAfter = time.Second
	// progressEvery is the interval of lines if the output is not a terminal.
	progressEvery = 10 * time.Second
)

// Progress shows the state of long work: a bar on a terminal, lines elsewhere, and nothing for work that ends soon. Only one
// goroutine at a time may use it.
type Progress struct {
	out     io.Writer
	title   string
	began   time.Time
	printed time.Time
	stage   string
	bar     *progressbar.ProgressBar
	silent  bool
}

// NewProgress starts the progress of work. If silent is true, it writes nothing.
func NewProgress(out io.Writer, title string, silent bool) *Progress {
	return &Progress{out: out, title: title, began: time.Now(), silent: silent}
}

// Update shows the state of the work. It is a callback for RebuildOptions.Progress and the like.
func (p *Progress) Update(at history.Progress) {
	if p.silent || time.Since(p.began) < progressAfter {
		return
	}
	if telemetry.IsTerminal(p.out) {
		p.draw(at)
		return
	}
	if time.Since(p.printed) < progressEvery {
		return
	}
	p.printed = time.Now()
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
	_ = p.bar.Set64(at.Done) // an error of the terminal cannot be handled
}

// End removes the bar from the terminal.
func (p *Progress) End() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

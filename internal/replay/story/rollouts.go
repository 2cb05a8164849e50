package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/words"
	"github.com/kuberewind/kuberewind/internal/terminal"
	"github.com/kuberewind/kuberewind/story"
)

func (p *textPrinter) rollouts(all []*story.Rollout) error {
	for i, r := range all {
		title := ""
		if i == 0 {
			title = "\n"
		}
		if i == 0 || all[i-1].Deployment != r.Deployment {
			text := fmt.Sprintf("Rollouts of Deployment %s:", output.ObjectName(r.Deployment.Namespace, r.Deployment.Name))
			title += p.style.Title(render.Line(text)) + "\n"
		}
		if _, err := fmt.Fprint(p.out, title+p.rollout(r)); err != nil {
			return err
		}
	}
	return nil
}

// rollout returns the text about a rollout: its start and its change, why it was stuck, how it ended.
func (p *textPrinter) rollout(r *story.Rollout) string {
	day, begin := "", fmt.Sprintf(" %-*s", len(shortForm), "before")
	if r.Start != nil {
		day, begin = p.newDay(r.Start.Span.Estimate), p.moment(r.Start)
	}
	const hang = lineWidth + len(output.Indent)
	text := day + terminal.Wrap(begin+"  "+render.Line(p.started(r)), p.width, hang) + "\n"
	for _, line := range p.troubles(r) {
		text += terminal.Wrap(strings.Repeat(" ", lineWidth)+p.style.Removed(render.Line(line)), p.width, hang) + "\n"
	}
	return text + strings.Repeat(" ", lineWidth) + p.ended(r) + "\n"
}

func (p *textPrinter) started(r *story.Rollout) string {
	text := ""
	if r.Revision != "" {
		text = "revision " + r.Revision + ": "
	}
	switch {
	case r.Created:
		text += "created"
	case r.Start == nil:
		text += "under way"
	default:
		var changes []string
		for _, c := range field.Expanded(field.Changes(r.Before, r.After)) {
			changes = append(changes, p.words.Of(c))
		}
		text += strings.Join(changes, ", ")
	}
	if r.Start != nil && r.Start.Manager != "" {
		text += "  [" + words.Writer(r.Start.Manager, r.Start.Subresource) + "]"
	}
	return text
}

func (p *textPrinter) troubles(r *story.Rollout) (lines []string) {
	for _, t := range r.Troubles {
		line := fmt.Sprintf("stuck from%s: %s of %s", p.moment(t.At), t.Reason, counted(t.Objects))
		if t.Message != "" {
			line += ": " + strings.TrimSpace(t.Message)
		}
		lines = append(lines, line)
	}
	return lines
}

// counted returns the name of one object. For several objects of one kind, it returns their number and kind.
func counted(all []*story.Object) string {
	if len(all) == 1 {
		return all[0].Stream.Kind + " " + all[0].Name
	}
	return output.Counted(len(all), all[0].Stream.Kind)
}

func (p *textPrinter) ended(r *story.Rollout) string {
	if r.End == nil {
		return "not done at the end of the story"
	}
	if r.Start == nil {
		return string(r.Outcome) + " at" + p.moment(r.End)
	}
	return fmt.Sprintf("%s after %s", r.Outcome, rounded(r.End.Span.Estimate.Sub(r.Start.Span.Estimate)))
}

// rounded rounds a duration to a precision that fits its length.
func rounded(d time.Duration) time.Duration {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond)
	case d < time.Minute:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

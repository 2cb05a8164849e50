package answers

import (
	"context"
	"fmt"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// The measured quantities of an answer.
const (
	firstLine   = "first line"
	wholeAnswer = "end"
	processCPU  = "CPU of replay"
	printed     = "lines"
)

// The limits, in milliseconds.
const (
	soon        = 300  // the first line, and the whole of what a shell completes
	storyWithin = 1000 // all of a story
)

// A question is one call of replay.
type question struct {
	name   string
	args   []string
	within float64 // how long it may take to the end; 0 for as long as it needs
}

// Measure asks everything of the record in a database. The text says which record it is.
func Measure(ctx context.Context, run *measure.Run, url, text string) error {
	s, err := choose(ctx, url)
	if err != nil {
		return fmt.Errorf("choose what to ask about: %w", err)
	}
	e := measure.Experiment{
		Name: "answers", Title: "Answers of replay", Data: text + ": " + s.String(), WarmUp: true,
		Quantities: []measure.Quantity{{Name: firstLine, Unit: "ms"}, {Name: wholeAnswer, Unit: "ms"}, {Name: processCPU, Unit: "ms"}, {Name: printed, Unit: "printed"}},
	}
	for _, q := range s.questions() {
		e.Ways = append(e.Ways, measure.Way{Name: q.name, Run: func(ctx context.Context, _ int) (measure.Values, error) { return ask(ctx, url, q.args) }})
		e.Compare = append(e.Compare, measure.Comparison{Number: "13", What: q.name + ": first line", Quantity: firstLine, Of: q.name, By: measure.Alone, AtMost: soon})
		if q.within > 0 {
			e.Compare = append(e.Compare, measure.Comparison{Number: "13", What: q.name + ": end", Quantity: wholeAnswer, Of: q.name, By: measure.Alone, AtMost: q.within})
		}
	}
	return run.Do(ctx, e)
}

func (s *subject) questions() []question {
	in := "--namespace=" + s.namespace
	deployment := "deployments/" + s.deployment
	before := fmt.Sprintf("--at=seq:%d", s.seq/2)
	return []question{
		{name: "log of a Deployment", args: []string{"log", deployment, in}},
		{name: "log of a namespace, a day", args: []string{"log", in, s.since(day)}},
		{name: "story of a Deployment, all", args: []string{"story", deployment, in}},
		// Its first line is a change; that of the text is the title.
		{name: "story of a Deployment, all, as JSON", args: []string{"story", deployment, in, "-o", "json"}},
		{name: "story of a Deployment, a day", args: []string{"story", deployment, in, s.since(day)}, within: storyWithin},
		{name: "blame of a Deployment", args: []string{"blame", deployment, in}},
		{name: "get --last of a Pod that is gone", args: []string{"get", "pods/" + s.gone, in, "--last", "-o", "yaml"}},
		{name: "coverage", args: []string{"coverage"}},
		{name: "names of Pods now", args: completing("get", "pods", in, ""), within: soon},
		{name: "names of Pods then", args: completing("get", "pods", in, before, ""), within: soon},
		{name: "names of Pods then, all namespaces", args: completing("get", "pods", "-A", before, ""), within: soon},
		{name: "namespaces", args: completing("get", "pods", "--namespace", ""), within: soon},
		{name: "managers", args: completing("log", "-A", "--manager", ""), within: soon},
	}
}

// completes is the command that a shell calls.
const completes = "__complete"

// completing is what a shell asks at a line's end.
func completing(line ...string) []string { return append([]string{completes}, line...) }

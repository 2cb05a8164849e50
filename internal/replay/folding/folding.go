package folding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/replay/env"
)

// The values of --only.
const (
	OnlySpec   = "spec"
	OnlyStatus = "status"
	OnlyAll    = "all"
)

// Rules decide which changes are only counted. They decide by what changed, never by who changed it. The zero value folds
// nothing.
type Rules struct {
	Active        bool
	OnCommandLine bool   // a flag on the command line sets a rule
	Verbose       bool   // fold only the changes that Ignore matches
	Only          string // "", OnlySpec, OnlyStatus or OnlyAll
	Events        bool   // show Events
	Ignore        []field.Pattern
	// Asked holds resources whose type the user named. Their objects are not folded for their type.
	Asked map[schema.GroupResource]bool
}

// AddFlags adds the flags that select the folded changes.
func AddFlags(flags *pflag.FlagSet) {
	flags.BoolP("verbose", "v", false, "show the changes that a terminal only counts: heartbeats, Events, and changes of only the status")
	flags.String("only", "", "spec: no changes of the status; status: only changes of the status; all: everything except Events")
	flags.StringArray("ignore", nil, "hide changes at or below a path")
	flags.Bool("events", false, "show Events too")
}

// Of returns the rules from flags and settings. A person at a terminal sees the changes of people and deployers. JSON and
// pipes fold nothing, unless a flag on the command line sets a rule.
func Of(e *env.Env, cmd *cobra.Command, person bool) (Rules, error) {
	onCommandLine := slices.ContainsFunc([]string{"verbose", "only", "ignore", "events"}, cmd.Flags().Changed)
	rules := Rules{Active: person || onCommandLine, OnCommandLine: onCommandLine, Verbose: e.Fold.Verbose, Only: e.Fold.Only, Events: e.Fold.Events}
	if known := []string{OnlySpec, OnlyStatus, OnlyAll}; rules.Only != "" && !slices.Contains(known, rules.Only) {
		return rules, env.Mistake(cmd, fmt.Errorf("--only %q: use one of %s", rules.Only, strings.Join(known, ", ")))
	}
	var err error
	if rules.Ignore, err = field.ParsePatterns(e.Fold.Ignore); err != nil {
		return rules, fmt.Errorf("--ignore: %w", err)
	}
	return rules, nil
}

// Class returns the class of a delta. If the class only reflects the type of the object, and the user requested that type,
// Class returns change.Shown.
func (r *Rules) Class(d change.Delta) change.Change {
	c := change.Of(d)
	byObject := c.Class == change.Event || c.Class == change.Lease || c.Class == change.Endpoints
	if byObject && (r.Asked[schema.GroupResource{Group: d.Group, Resource: d.Resource}] || c.Class == change.Event && r.Events) {
		c.Class = change.Shown
	}
	return c
}

// All reports whether the user requested all changes (--verbose).
func (r *Rules) All() bool { return r.Active && r.Verbose }

// Folds reports whether a delta of a class is only counted.
func (r *Rules) Folds(class change.Class) bool {
	switch {
	case !r.Active || r.Verbose:
		return false
	case r.Only == OnlyAll:
		return class == change.Event
	case r.Only == OnlyStatus && class == change.Status:
		return false
	}
	return class != change.Shown
}

// Visible returns the changes to show of a shown version. It always shows an object that was added or removed as a whole. If
// a version changes more than its status, counted is the number of status changes that are not shown.
func (r *Rules) Visible(class change.Class, all []field.Change) (visible []field.Change, counted int) {
	if !r.Active {
		return all, 0
	}
	for _, c := range all {
		status := c.Path.Under("status")
		switch {
		case len(c.Path) > 0 && slices.ContainsFunc(r.Ignore, func(p field.Pattern) bool { return p.Covers(c) }):
		case len(c.Path) == 0 || r.Verbose || r.Only == OnlyAll || r.Only == OnlyStatus && status || r.Only != OnlyStatus && !status:
			visible = append(visible, c)
		case r.Only == "" && class == change.Status:
			visible = append(visible, c)
		case r.Only == "":
			counted++
		}
	}
	return visible, counted
}

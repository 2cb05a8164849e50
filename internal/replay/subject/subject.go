package subject

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

// Help holds the help texts of a command.
type Help struct{ Short, Long, Example string }

// NewCommand makes a command about one object. In the example, %[1]s is the name by which the user called the program.
func NewCommand(e *env.Env, name string, help Help, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use:     name + " (TYPE/NAME | TYPE NAME)",
		Short:   help.Short,
		Long:    help.Long,
		Example: fmt.Sprintf(help.Example, e.Command),
		RunE:    run,
	}
}

// OutputVar adds the flag --output.
func OutputVar(cmd *cobra.Command, form *string) {
	cmd.Flags().StringVarP(form, "output", "o", output.Text, "text or json")
}

// Validate rejects an unknown form, and a command line without an object; missing is the error for the latter.
func Validate(cmd *cobra.Command, form string, args []string, missing string) error {
	if !slices.Contains([]string{output.Text, output.JSON}, form) {
		return env.Mistake(cmd, fmt.Errorf("--output %q: use one of text, json", form))
	}
	if len(args) == 0 {
		return env.Mistake(cmd, errors.New(missing))
	}
	return nil
}

// A Subject is the object that a command line names.
type Subject struct {
	Rec      *env.Record
	Resource *resource.Resource
	Scope    history.Scope // scope of the object
}

// Answer opens the record, finds the object of the arguments at an instant, calls answer, and closes the record. If the
// instant cannot be resolved, the error names flag.
func Answer(ctx context.Context, e *env.Env, args []string, flag string, at history.Instant, answer func(Subject) error) error {
	namespace, err := e.Namespace(false)
	if err != nil {
		return err
	}
	rec, err := e.Open(ctx)
	if err != nil {
		return err
	}
	s, err := find(ctx, e, rec, args, namespace, flag, at)
	if err == nil {
		err = answer(s)
	}
	return errors.Join(err, rec.Close())
}

func find(ctx context.Context, e *env.Env, rec *env.Record, args []string, namespace, flag string, at history.Instant) (Subject, error) {
	instant, _, err := e.TimeOf(ctx, rec, at)
	if err != nil {
		return Subject{}, fmt.Errorf("%s: %w", flag, err)
	}
	catalog, err := resource.ReadCatalog(ctx, rec.Record, instant, e.Note)
	if err != nil {
		return Subject{}, err
	}
	targets, err := catalog.Targets(args)
	if err != nil {
		return Subject{}, err
	}
	r, scope, err := resource.One(targets, namespace)
	if err != nil {
		return Subject{}, err
	}
	e.Note(r.Confined(namespace))
	return Subject{Rec: rec, Resource: r, Scope: scope}, nil
}

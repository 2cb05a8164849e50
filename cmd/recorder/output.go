package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/render"
)

// outputFlag is the flag --output, as in kubectl.
type outputFlag struct{ format string }

func (o *outputFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "json, yaml, or wide for a table with everything; empty for a short table")
}

// validate returns an error if the format is unknown. Commands call it before they do their work.
func (o *outputFlag) validate() error {
	switch o.format {
	case "", "wide", "json", "yaml":
		return nil
	}
	return usageError{fmt.Errorf("--output %q is none of json, yaml, wide", o.format)}
}

// print writes the value as JSON or YAML. For the other formats it calls table.
func (p *program) print(o outputFlag, value any, table func(wide bool) error) error {
	var text []byte
	var err error
	switch o.format {
	case "json":
		text, err = json.MarshalIndent(value, "", "  ")
		text = append(render.JSON(text), '\n')
	case "yaml":
		if text, err = json.Marshal(value); err == nil {
			text, err = render.YAML(text)
		}
	default:
		return table(o.format == "wide")
	}
	if err != nil {
		return err
	}
	_, err = p.out.Write(text)
	return err
}

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/render"
)

// outputFlag is --output, as kubectl has it.
type outputFlag struct{ format string }

func (o *outputFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "json, yaml, or wide for a table with everything; what matters when empty")
}

// validate comes before the work whose result is to be printed.
func (o *outputFlag) validate() error {
	switch o.format {
	case "", "wide", "json", "yaml":
		return nil
	}
	return usageError{fmt.Errorf("--output %q is none of json, yaml, wide", o.format)}
}

// print writes the value in the format asked for, or calls table.
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

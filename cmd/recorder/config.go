package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kuberewind/kuberewind/internal/config"
)

func (p *program) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print the effective configuration, passwords masked",
		Long: "Print the effective configuration as a file that --config takes, passwords masked.\n\n" +
			"Environment variables: " + strings.Join(variables(), ", ") + ".\n" +
			"In a variable, white space separates the rules of a list.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := p.loadQuietly(cmd)
			if err != nil {
				return err
			}
			text, err := yaml.Marshal(cfg.Masked().Settings())
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(p.out, string(text))
			return err
		},
	}
}

func variables() []string {
	var names []string
	for _, key := range config.Keys() {
		names = append(names, "RECORDER_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_")))
	}
	return names
}

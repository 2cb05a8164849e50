package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/preflight"
)

func (p *program) checkCommand() *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether a recorder could record: cluster, permissions, database, key",
		Long: "Check whether a recorder could record. The cluster must be reachable and readable, the database writable, and the redaction\n" +
			"key the right one. Nothing is changed. The exit code is 1 if a check fails.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := p.loadQuietly(cmd)
			if err != nil {
				return err
			}
			if err := output.validate(); err != nil {
				return err
			}
			report := preflight.Check(cmd.Context(), cfg, log)
			if err := p.print(output, report, func(wide bool) error { return p.printReport(report, wide) }); err != nil {
				return err
			}
			if !report.OK {
				return errReport
			}
			return nil
		},
	}
	output.add(cmd)
	return cmd
}

var errReport = errors.New("something is not as it should be")

// printReport shows each finding, and the resources that would be missed; wide, all resources.
func (p *program) printReport(report preflight.Report, wide bool) error {
	t := newTable(p.out)
	var advice []string
	for _, f := range report.Findings {
		t.row(verdict(f.OK), f.What, f.Detail)
		if f.Advice != "" {
			advice = append(advice, f.Advice)
		}
	}
	for _, a := range report.Resources {
		if wide || !a.OK {
			t.titled("", "RESOURCE", "ACCESS")
			t.row(verdict(a.OK), a.Resource, a.Detail)
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, text := range advice {
		fmt.Fprintf(p.out, "\n%s\n", strings.TrimSpace(text))
	}
	return nil
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAIL"
}

package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/kuberewind/kuberewind/internal/preflight"
)

// Preflight prints each finding, and the resources that the recorder could not record. If wide is set, it prints all resources.
func Preflight(out io.Writer, report preflight.Report, wide bool) error {
	t := newTable(out)
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
		fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(text))
	}
	return nil
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAIL"
}

// Package docs generates the parts of the documentation that come from the code: the tables of metrics and settings.
package docs

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/telemetry"
)

// Generate inserts the tables between their marks into the text of docs/reference.md.
func Generate(page []byte) ([]byte, error) {
	page, err := replace(page, "metrics", metrics())
	if err != nil {
		return nil, err
	}
	return replace(page, "settings", settings())
}

// replace inserts rows below the table head between the marks <!-- name … --> and <!-- /name -->.
func replace(page []byte, name string, rows []string) ([]byte, error) {
	begin := bytes.Index(page, []byte("<!-- "+name))
	end := bytes.Index(page, []byte("<!-- /"+name+" -->"))
	head := -1
	if begin >= 0 {
		head = bytes.Index(page[begin:], []byte("|---"))
	}
	if head < 0 || end < begin {
		return nil, fmt.Errorf("docs/reference.md has no table between the marks of %s", name)
	}
	head += begin
	head += bytes.IndexByte(page[head:], '\n') + 1
	out := append([]byte{}, page[:head]...)
	out = append(out, strings.Join(rows, "\n")+"\n"...)
	return append(out, page[end:]...), nil
}

// metrics returns the rows of the program's own metrics. The Go runtime and the process collectors document theirs.
func metrics() []string {
	var rows []string
	for _, d := range telemetry.Describe() {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", d.Name, d.Help))
	}
	return rows
}

func settings() []string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Flags(flags)
	var rows []string
	flags.VisitAll(func(f *pflag.Flag) {
		variable := "RECORDER_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		rows = append(rows, fmt.Sprintf("| `--%s` | `%s` | %s | %s |", f.Name, variable, defaultOf(f), strings.ReplaceAll(f.Usage, "|", "\\|")))
	})
	return rows
}

// defaultOf returns the default of a flag, without values that depend on the user.
func defaultOf(f *pflag.Flag) string {
	switch {
	case f.Name == "data-dir":
		return "as root `/var/lib/kuberewind`, else `kuberewind` in `$XDG_DATA_HOME` or `~/.local/share`"
	case f.DefValue == "" || f.DefValue == "[]":
		return ""
	default:
		return "`" + f.DefValue + "`"
	}
}

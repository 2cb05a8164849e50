package cookbook_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const pagePath = "../../docs/cookbook.md"

// question is a heading of the page with its query and what psql printed.
type question struct {
	title, text, sql, output string // text is what stands before the query
}

// page is docs/cookbook.md.
type page struct {
	text      string
	settings  map[string]string // the psql variables of the page
	shell     map[string]string // the variables of a shell
	questions []question
}

var (
	settingLine = regexp.MustCompile(`(?m)^\\set (\w+) '([^']*)'`)
	shellLine   = regexp.MustCompile(`(?m)^(\w+)=(\S+)$`)
	heading     = regexp.MustCompile(`(?m)^### (.*)$`)
	sqlBlock    = regexp.MustCompile("(?s)```sql\n(.*?)```\n")
	textBlock   = regexp.MustCompile("(?s)```text\n(.*?)```\n")
)

// readPage wants one query under each heading, and one output for it.
func readPage(t *testing.T) page {
	t.Helper()
	text, err := os.ReadFile(pagePath)
	require.NoError(t, err)
	p := page{text: string(text), settings: map[string]string{}, shell: map[string]string{}}
	for _, setting := range settingLine.FindAllStringSubmatch(p.text, -1) {
		p.settings[setting[1]] = setting[2]
	}
	for _, setting := range shellLine.FindAllStringSubmatch(p.text, -1) {
		p.shell[setting[1]] = setting[2]
	}
	titles := heading.FindAllStringSubmatchIndex(p.text, -1)
	for i, title := range titles {
		end := len(p.text)
		if i+1 < len(titles) {
			end = titles[i+1][0]
		}
		q := question{title: p.text[title[2]:title[3]]}
		body := p.text[title[1]:end]
		sql, output := sqlBlock.FindAllStringSubmatch(body, -1), textBlock.FindAllStringSubmatch(body, -1)
		require.Len(t, sql, 1, q.title)
		require.Len(t, output, 1, q.title)
		q.text, _, _ = strings.Cut(body, "```sql")
		q.sql, q.output = sql[0][1], output[0][1]
		p.questions = append(p.questions, q)
	}
	require.Len(t, sqlBlock.FindAllString(p.text, -1), len(p.questions), "every query stands under a heading of its own")
	return p
}

// with gives the page with other outputs and settings, all else as it was.
func (p page) with(settings map[string]string, outputs []string) string {
	text := settingLine.ReplaceAllStringFunc(p.text, func(line string) string {
		name := settingLine.FindStringSubmatch(line)[1]
		return fmt.Sprintf(`\set %s '%s'`, name, settings[name])
	})
	text = shellLine.ReplaceAllStringFunc(text, func(line string) string {
		name := shellLine.FindStringSubmatch(line)[1]
		return name + "=" + shellTime(settings[name])
	})
	next := 0
	return textBlock.ReplaceAllStringFunc(text, func(string) string {
		next++
		return "```text\n" + outputs[next-1] + "```\n"
	})
}

// shellTime writes an instant as replay takes it.
func shellTime(setting string) string {
	return strings.NewReplacer(" ", "T", "+00", "Z").Replace(setting)
}

// The differences between two runs of the same story. Columns are as wide as what stands in them, so widths go as well.
var volatile = []struct {
	pattern *regexp.Regexp
	token   string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+00|Z)?`), "<time>"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`), "<day>"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?\b`), "<clock>"},
	{regexp.MustCompile(`\b[0-9.]+ (bytes|kB)\b`), "<size>"},
	{regexp.MustCompile(`hmac-sha256:[0-9a-f]+`), "<hash>"},
	{regexp.MustCompile(`\bv1\.\d+\.\d+\S*`), "<version>"},
	{regexp.MustCompile(`-{2,}`), "-"},
	{regexp.MustCompile(` {2,}`), " "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

func normalised(output string) string {
	for _, v := range volatile {
		output = v.pattern.ReplaceAllString(output, v.token)
	}
	return output
}

func names[V any](settings map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(settings)), " ")
}

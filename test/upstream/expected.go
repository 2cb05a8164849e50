package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A difference is a test that does not pass, and the sentence of the documentation that says so.
type difference struct {
	how      how
	document string // a file of the project, from its root
	sentence string // that stands there
	note     string
}

// how says what more is known of a difference.
type how string

const (
	plain      how = "plain"
	translated how = "translated" // it passes when what a list showed comes as Replaced
	looped     how = "looped"     // it passes when ListAndWatch goes on after a failed watch
	tooSlow    how = "slow"       // it is not run
)

// setting is the variable under which the test passes.
func (h how) setting() string {
	switch h {
	case translated:
		return "UPSTREAM_TRANSLATED=1"
	case looped:
		return "UPSTREAM_LOOP=1"
	default:
		return ""
	}
}

// excuses reports whether a difference accounts for an outcome. Nothing accounts for a data race or a leak.
func (d difference) excuses(o outcome) bool {
	return d.document != "" && slices.Contains([]outcome{failed, hung, panicked}, o)
}

// expected are the differences, by suite and test.
type expected map[string]map[string]difference

// readExpected reads lines of suite, test, how, document, sentence and, perhaps, a note. It is an error if a document does
// not hold its sentence.
func readExpected(file string) (expected, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	project := filepath.Join(filepath.Dir(file), "..", "..", "..")
	all := expected{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") || fields[0] == "" {
			continue
		}
		if len(fields) < 5 {
			return nil, fmt.Errorf("%s: a line of %d fields: %s", file, len(fields), line)
		}
		d := difference{how: how(fields[2]), document: fields[3], sentence: fields[4], note: strings.Join(fields[5:], " ")}
		if err := d.proved(project); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, fields[1], err)
		}
		if all[fields[0]] == nil {
			all[fields[0]] = map[string]difference{}
		}
		all[fields[0]][fields[1]] = d
	}
	return all, nil
}

// comment is what stands between the words of a sentence in Go's comments and in Markdown.
var comment = regexp.MustCompile(`\s+(?://\s*)?`)

// proved looks for the sentence.
func (d difference) proved(project string) error {
	text, err := os.ReadFile(filepath.Join(project, filepath.FromSlash(d.document)))
	if err != nil {
		return err
	}
	if !strings.Contains(comment.ReplaceAllString(string(text), " "), d.sentence) {
		return fmt.Errorf("%s does not say %q", d.document, d.sentence)
	}
	return nil
}

// A report collects outcomes.
type report struct {
	mu                             sync.Mutex // protects what follows
	lines                          []string
	bugLines                       []string
	ran, passes, differences, bugs int
}

func (r *report) leftOut(suite, test string, d difference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf("%s\t%s\tleft out\t%s", suite, test, d.note))
}

func (r *report) add(suite, test string, got try, d difference, listed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran++
	switch {
	case got.outcome == passed:
		r.passes++
		if listed {
			r.lines = append(r.lines, fmt.Sprintf("%s\t%s\tPASS\tthough a difference is documented in %s", suite, test, d.document))
		}
	case listed && d.excuses(got.outcome):
		r.differences++
		r.lines = append(r.lines, fmt.Sprintf("%s\t%s\t%s\t%s: %q", suite, test, got.outcome, d.document, d.sentence))
	default:
		r.bugs++
		said := strings.Split(strings.TrimSpace(got.said), "\n")
		end := strings.Join(said[max(0, len(said)-endLines):], "\n    ")
		r.bugLines = append(r.bugLines, fmt.Sprintf("%s\t%s\t%s\tBUG, all of it in %s (-keep), its end:\n    %s", suite, test, got.outcome, got.log, end))
	}
}

// endLines is how many of the last lines of a bug are printed.
const endLines = 25

// print ends with the bugs and the sum.
func (r *report) print(w io.Writer) error {
	slices.Sort(r.lines)
	slices.Sort(r.bugLines)
	for _, line := range slices.Concat(r.lines, r.bugLines) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "upstream: %d run, %d pass, %d documented differences, %d bugs\n", r.ran, r.passes, r.differences, r.bugs)
	return err
}

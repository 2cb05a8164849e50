package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// The limits of a file, in words of a sentence.
const (
	longestLimit = 30
	ninthLimit   = 25
	medianLimit  = 16
)

// report is what is known of the sentences of one file.
type report struct {
	file      string
	sentences int
	median    int
	ninth     int // the 90th percentile
	longest   []sentence
	refused   []sentence
}

// measure reads one file. The extension decides the language.
func measure(file string) (report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return report{}, err
	}
	var passages []passage
	switch filepath.Ext(file) {
	case ".md":
		passages = markdown(text)
	case ".sql":
		passages = sql(string(text))
	case ".go":
		if passages, err = source(file, text); err != nil {
			return report{}, err
		}
	default:
		return report{}, fmt.Errorf("%s: unknown kind of text; name a .md, .go or .sql file", file)
	}
	return summarize(file, sentences(passages)), nil
}

func summarize(file string, all []sentence) report {
	r := report{file: file, sentences: len(all)}
	if len(all) == 0 {
		return r
	}
	for _, s := range all {
		if refusedIn(s.text) != "" {
			r.refused = append(r.refused, s)
		}
	}
	slices.SortStableFunc(all, func(a, b sentence) int { return cmp.Compare(a.words, b.words) })
	r.median, r.ninth = percentile(all, 50), percentile(all, 90)
	slices.Reverse(all)
	r.longest = all[:min(3, len(all))]
	return r
}

// percentile returns the smallest length that the given share of sentences, in hundredths, does not exceed (nearest rank).
func percentile(sorted []sentence, of int) int {
	rank := (len(sorted)*of + 99) / 100
	return sorted[max(rank, 1)-1].words
}

// broken names the limits that the file breaks.
func (r report) broken() []string {
	if r.sentences == 0 {
		return nil
	}
	var broken []string
	for _, limit := range []struct {
		name       string
		value, max int
	}{
		{"longest sentence", r.longest[0].words, longestLimit},
		{"90th percentile", r.ninth, ninthLimit},
		{"median", r.median, medianLimit},
	} {
		if limit.value > limit.max {
			broken = append(broken, fmt.Sprintf("%s %d, limit %d", limit.name, limit.value, limit.max))
		}
	}
	if len(r.refused) > 0 {
		broken = append(broken, fmt.Sprintf("%d sentences with refused words", len(r.refused)))
	}
	return broken
}

func (r report) print(out io.Writer) {
	fmt.Fprintf(out, "%s: %d sentences, median %d, 90th percentile %d words\n", r.file, r.sentences, r.median, r.ninth)
	for _, s := range r.longest {
		fmt.Fprintf(out, "  %3d words, line %d: %s\n", s.words, s.line, beginning(s.text))
	}
	for _, s := range r.refused {
		fmt.Fprintf(out, "  line %d: %q is refused in: %s\n", s.line, refusedIn(s.text), beginning(s.text))
	}
}

// beginning returns the start of a sentence, long enough to find the sentence.
func beginning(text string) string {
	const enough = 50
	runes := []rune(text)
	if len(runes) <= enough {
		return text
	}
	return string(runes[:enough]) + "…"
}

package main

import "strings"

// sql returns the comments of an SQL file. Lines of comment without code between them are one text.
func sql(file string) []passage {
	var passages []passage
	var text strings.Builder
	begin := 0
	flush := func() {
		passages = append(passages, paragraphs(begin, text.String())...)
		text.Reset()
	}
	for i, line := range strings.Split(file, "\n") {
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), "--")
		if !ok {
			flush()
			continue
		}
		if text.Len() == 0 {
			begin = i + 1
		}
		text.WriteString(strings.TrimPrefix(comment, " ") + "\n")
	}
	flush()
	return passages
}

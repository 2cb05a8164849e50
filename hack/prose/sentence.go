package main

import (
	"regexp"
	"strings"
	"unicode"
)

// passage is a stretch of running text: a paragraph, an item of a list, a message.
type passage struct {
	line int
	text string
}

type sentence struct {
	line  int
	words int
	text  string
}

var (
	// A sentence ends with a mark, closing quotes and brackets, and a space.
	ending = regexp.MustCompile("[.!?…][\"'”’)\\]*_`]*\\s+")
	// These end with a period, and the sentence goes on.
	abbreviation = regexp.MustCompile(`(?i)(^|[\s("'])(e\.g|i\.e|cf|vs|no|approx|resp)\.$`)
	// Code in running text counts as one word.
	codeSpan = regexp.MustCompile("`[^`]+`")
)

func sentences(passages []passage) []sentence {
	var all []sentence
	for _, p := range passages {
		for _, text := range split(p.text) {
			if n := words(text); n > 0 {
				all = append(all, sentence{line: p.line, words: n, text: text})
			}
		}
	}
	return all
}

// split cuts running text at the ends of its sentences.
func split(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	var all []string
	begin := 0
	for _, at := range ending.FindAllStringIndex(text, -1) {
		candidate := strings.TrimSpace(text[begin:at[1]])
		if abbreviation.MatchString(candidate) {
			continue
		}
		all = append(all, candidate)
		begin = at[1]
	}
	return append(all, strings.TrimSpace(text[begin:]))
}

// words counts what has a letter or a digit in it.
func words(text string) int {
	n := 0
	for _, field := range strings.Fields(codeSpan.ReplaceAllString(text, "code")) {
		if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

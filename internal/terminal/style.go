package terminal

import "strings"

// Style colours text. The zero value returns text unchanged. The text must be free of characters that control a terminal:
// see package render.
type Style struct{ on bool }

// NewStyle returns a style that colours text, if on is true.
func NewStyle(on bool) Style { return Style{on: on} }

// The codes use the eight colours that each theme of a terminal defines itself.
const (
	bold    = "1"
	dim     = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	magenta = "35"
	cyan    = "36"
	loud    = "1;31"
)

const (
	begin = "\x1b["
	reset = "\x1b[0m"
)

// Added colours added things.
func (s Style) Added(text string) string { return s.paint(green, text) }

// Removed colours removed things.
func (s Style) Removed(text string) string { return s.paint(red, text) }

// Changed colours changed things.
func (s Style) Changed(text string) string { return s.paint(yellow, text) }

// Estimated colours uncertain things.
func (s Style) Estimated(text string) string { return s.paint(magenta, text) }

// Note colours notes about an answer.
func (s Style) Note(text string) string { return s.paint(cyan, text) }

// Error colours errors.
func (s Style) Error(text string) string { return s.paint(loud, text) }

// Title colours titles.
func (s Style) Title(text string) string { return s.paint(bold, text) }

// Dim colours less important things.
func (s Style) Dim(text string) string { return s.paint(dim, text) }

// paint colours each line separately, because pagers reset colours at the end of a line.
func (s Style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = begin + code + "m" + line + reset
		}
	}
	return strings.Join(lines, "\n")
}

// Change colours a line by its first character: +, - or ~.
func (s Style) Change(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return s.Added(line)
	case strings.HasPrefix(line, "-"):
		return s.Removed(line)
	case strings.HasPrefix(line, "~"):
		return s.Changed(line)
	}
	return line
}

// Unified colours a unified diff.
func (s Style) Unified(text string) string {
	if !s.on {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			lines[i] = s.Title(line)
		case strings.HasPrefix(line, "@@ "):
			lines[i] = s.Note(line)
		case strings.HasPrefix(line, "+"):
			lines[i] = s.Added(line)
		case strings.HasPrefix(line, "-"):
			lines[i] = s.Removed(line)
		}
	}
	return strings.Join(lines, "\n")
}

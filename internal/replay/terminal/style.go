package terminal

import "strings"

// Style colours text. The zero value leaves it as it is. Text has to be free of what steers a terminal: see package render.
type Style struct{ on bool }

// NewStyle makes a style that colours text, or leaves it as it is.
func NewStyle(on bool) Style { return Style{on: on} }

// The codes are of the eight colours that each theme of a terminal sets itself.
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

// Added is for what came.
func (s Style) Added(text string) string { return s.paint(green, text) }

// Removed is for what went.
func (s Style) Removed(text string) string { return s.paint(red, text) }

// Changed is for what is different.
func (s Style) Changed(text string) string { return s.paint(yellow, text) }

// Estimated is for what is not certain.
func (s Style) Estimated(text string) string { return s.paint(magenta, text) }

// Note is for what an answer is to be taken with.
func (s Style) Note(text string) string { return s.paint(cyan, text) }

// Error is for what failed.
func (s Style) Error(text string) string { return s.paint(loud, text) }

// Title is for what stands over others.
func (s Style) Title(text string) string { return s.paint(bold, text) }

// Dim is for what matters less.
func (s Style) Dim(text string) string { return s.paint(dim, text) }

// paint colours each line by itself: pagers forget colours at the end of one.
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

// Change colours a line that begins with +, - or ~, as it says.
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

// Unified colours a unified difference.
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

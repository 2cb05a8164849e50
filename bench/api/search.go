package api

import (
	"bytes"
	"errors"
)

// errFound says that a search has found its text as often as it is wanted.
var errFound = errors.New("found")

// A search discards what is written to it, until it has seen a text so many times.
type search struct {
	text  []byte
	left  int
	carry []byte // the end of what came before: the text may begin there
}

// searchFor searches for a text once or more.
func searchFor(text string, times int) *search { return &search{text: []byte(text), left: times} }

// Write implements io.Writer.
func (s *search) Write(p []byte) (int, error) {
	keep := len(s.text) - 1
	edge := append(s.carry, p[:min(keep, len(p))]...)
	s.left -= bytes.Count(edge, s.text) + bytes.Count(p, s.text)
	if s.left <= 0 {
		return len(p), errFound
	}
	if len(p) >= keep {
		s.carry = append(s.carry[:0], p[len(p)-keep:]...)
	} else {
		s.carry = append(s.carry[:0], edge[max(0, len(edge)-keep):]...)
	}
	return len(p), nil
}

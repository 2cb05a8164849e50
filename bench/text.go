package main

import (
	"fmt"
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// A hole is a place in a text where objects and versions differ.
type hole int

const (
	holeName hole = iota
	holeNamespace
	holeUID
	holeRV
	holeCreated // when the object was created
	holeChanged // when this version was written
	holeSettled // when a Pod was scheduled, or its containers started
	holeNode
	holeIP
	holeTag // of the image
	holeOwner
	holeReady      // True or False
	holeSecret     // some random text
	holeCount      // a number: restarts, transitions
	holeGeneration // a number
	holes
)

// A text is a canonical JSON text with holes in its strings. Filling them with plain text keeps it canonical, so that no version
// has to be parsed: the cost of making the record is that of writing it.
type text struct {
	parts []string
	holes []hole // one between every two parts
}

// newText makes a text of JSON, in which <n> stands for hole n within a string, and "<#n>" for a number.
func newText(json string) (*text, error) {
	doc, err := patch.Canonical([]byte(json))
	if err != nil {
		return nil, fmt.Errorf("a template of objects: %w", err)
	}
	rest := string(doc)
	t := &text{}
	for {
		before, after, found := strings.Cut(rest, "<")
		if !found {
			t.parts = append(t.parts, rest)
			return t, nil
		}
		mark, after, _ := strings.Cut(after, ">")
		if strings.HasPrefix(mark, "#") {
			before, after, mark = strings.TrimSuffix(before, `"`), strings.TrimPrefix(after, `"`), mark[1:]
		}
		var h hole
		if _, err := fmt.Sscan(mark, (*int)(&h)); err != nil || h < 0 || h >= holes {
			return nil, fmt.Errorf("a template of objects: no hole is called %q", mark)
		}
		t.parts, t.holes = append(t.parts, before), append(t.holes, h)
		rest = after
	}
}

// fill gives a document of its own memory.
func (t *text) fill(values *[holes]string) patch.Doc {
	size := 0
	for _, p := range t.parts {
		size += len(p)
	}
	for _, h := range t.holes {
		size += len(values[h])
	}
	doc := make(patch.Doc, 0, size)
	for i, h := range t.holes {
		doc = append(doc, t.parts[i]...)
		doc = append(doc, values[h]...)
	}
	return append(doc, t.parts[len(t.parts)-1]...)
}

func (h hole) String() string { return fmt.Sprintf("<%d>", int(h)) }

// number stands for a hole that is filled with a number.
func (h hole) number() string { return fmt.Sprintf(`"<#%d>"`, int(h)) }

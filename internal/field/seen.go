package field

import (
	"fmt"
	"strings"

	"github.com/kuberewind/kuberewind/internal/mistyped"
	"github.com/kuberewind/kuberewind/patch"
)

// seenMost is how many documents are looked at: the paths of more say little more.
const seenMost = 50

// Seen are the paths of some documents in which --path found nothing. They say what was perhaps meant. The zero value has seen none.
type Seen struct {
	paths     map[string]bool // of whole members, too
	documents int
}

// Add notes the paths of a document, if it is one of the first.
func (s *Seen) Add(doc patch.Doc) {
	if doc == nil || s.documents == seenMost {
		return
	}
	s.documents++
	if s.paths == nil {
		s.paths = map[string]bool{}
	}
	for _, path := range Paths(doc) {
		s.paths[path] = true
		for i, r := range path {
			if r == '.' || r == '[' {
				s.paths[path[:i]] = true
			}
		}
	}
}

// Hint says that no document had a path, and what was perhaps meant. It says nothing of a path that a document had, or if it has seen no document.
func (s *Seen) Hint(path string) string {
	path = strings.TrimPrefix(path, ".")
	if s.documents == 0 || s.paths[path] {
		return ""
	}
	all := make([]string, 0, len(s.paths))
	for each := range s.paths {
		all = append(all, each)
	}
	text := fmt.Sprintf("no version in this scope has --path %q", path)
	if like := mistyped.Suggest(path, all); like != "" {
		return text + fmt.Sprintf("; did you mean %s?", like)
	}
	if strings.Contains(path, "[") {
		return "" // it may be written in another way than here
	}
	return text
}

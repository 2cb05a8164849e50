package field

import (
	"fmt"
	"strings"

	"github.com/kuberewind/kuberewind/internal/mistyped"
	"github.com/kuberewind/kuberewind/patch"
)

// seenMost bounds the number of documents that Seen reads: more documents add few new paths.
const seenMost = 50

// Seen holds the paths of documents in which --path found nothing. From them, Hint suggests the path that the user perhaps
// meant. The zero value is empty.
type Seen struct {
	paths     map[string]bool // also paths of objects and arrays
	documents int
}

// Add adds the paths of a document, up to seenMost documents.
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

// Hint returns a note that no document has a path, with a suggestion if there is one. It returns "" if a document has the
// path, or if Seen is empty.
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
		return "" // the user may write the path in another form than Paths does
	}
	return text
}

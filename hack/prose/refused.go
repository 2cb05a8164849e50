package main

import (
	"go/ast"
	"regexp"
	"strings"
)

// Plain English names the thing that acts, and uses the words of the field. These are the words and beginnings for which there
// is always a plainer one.
var refused = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(whoever|somebody|someone|anybody|nobody|aught|lest)\b`),
	regexp.MustCompile(`(?i)\b(doubt(s|ed|ful|less)?|undoubted(ly)?|ow(e|es|ed|ing)|confess(es|ed|ion)?|believe[sd]?)\b`),
	regexp.MustCompile(`(?i)\b(tell|tells|told|untold|telling|leave|leaves|leaving|leavers?)\b`),
	regexp.MustCompile(`(?i)\b(the ones? before|the ones? after|com(e|es|ing) to nothing|came to nothing|anew)\b`),
	regexp.MustCompile(`^(What|Of (those|these|what|whom|which)|That which|Whose)\b.*[^?]$`),
}

// refusedIn returns the first word or beginning of a sentence that is refused, or "".
func refusedIn(sentence string) string {
	sentence = codeSpan.ReplaceAllString(sentence, "code")
	for _, r := range refused {
		if found := r.FindStringSubmatch(sentence); found != nil {
			if strings.HasPrefix(r.String(), "^") {
				return found[1]
			}
			return found[0]
		}
	}
	return ""
}

// camelWord is a word of a Go name, in which each begins with a capital letter.
var camelWord = regexp.MustCompile(`[A-Z][a-z0-9]*`)

// testName returns the name of a test as a sentence, or "".
func testName(node ast.Node) string {
	f, ok := node.(*ast.FuncDecl)
	if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
		return ""
	}
	return strings.Join(camelWord.FindAllString(strings.TrimPrefix(f.Name.Name, "Test"), -1), " ")
}

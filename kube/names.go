package kube

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

const (
	// maxName is the most bytes of a Kubernetes name: the length of a DNS-1123 subdomain.
	maxName = 253
	// quotedBytes is how many bytes of a refused name a message shows.
	quotedBytes = 80
)

// wellNamed separates the resources that can be followed from those whose names no Kubernetes API can have. An aggregated
// API server can return any text in discovery, and that text becomes part of request paths, rows and log lines.
func wellNamed(found []Resource) (good []Resource, misnamed []string) {
	good = slices.DeleteFunc(found, func(r Resource) bool {
		fault := nameFault(r)
		if fault != "" {
			misnamed = append(misnamed, quoted(r.String())+": "+fault)
		}
		return fault != ""
	})
	return good, misnamed
}

// nameFault returns the fault of a resource's names, or "" if they are valid. Names of resources need not be DNS-1123
// labels: for example, metrics APIs name resources after metrics.
func nameFault(r Resource) string {
	switch {
	case r.Group != "" && len(content.IsDNS1123Subdomain(r.Group)) > 0:
		return "its group is no DNS-1123 subdomain"
	case len(content.IsDNS1123Label(r.Version)) > 0:
		return "its version is no DNS-1123 label"
	case r.Name == "" || !printable(r.Name) || len(content.IsPathSegmentName(r.Name)) > 0:
		return "its name cannot be part of a path"
	case !printable(r.Kind):
		return "its kind cannot be printed"
	}
	return ""
}

func printable(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// quoted returns a name of any content, quoted and shortened.
func quoted(name string) string {
	if len(name) > quotedBytes {
		return strconv.QuoteToASCII(name[:quotedBytes]) + "…"
	}
	return strconv.QuoteToASCII(name)
}

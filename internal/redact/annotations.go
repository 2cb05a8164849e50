package redact

import (
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

const (
	annotationsPrefix = "/metadata/annotations/"
	lastAppliedKey    = "kubectl.kubernetes.io/last-applied-configuration"
	lastApplied       = annotationsPrefix + "kubectl.kubernetes.io~1last-applied-configuration"
)

// clearAnnotations are annotations that never hold data: their tools write the name or the UID of an object there.
// docs/security.md lists them.
var clearAnnotations = []string{
	"kubernetes.io/service-account.name",
	"kubernetes.io/service-account.uid",
	"meta.helm.sh/release-name",
	"meta.helm.sh/release-namespace",
	"argocd.argoproj.io/tracking-id",
	"cert-manager.io/certificate-name",
}

// clearExcept returns the pointers of clearAnnotations. The value is false if an operator named the annotation, so that it is hashed.
func clearExcept(named []patch.Path) map[string]bool {
	stay := map[string]bool{}
	for _, key := range clearAnnotations {
		stay[annotationsPrefix+strings.ReplaceAll(key, "/", "~1")] = !selects(named, key)
	}
	return stay
}

// selects reports whether paths select an annotation or a value that contains it.
func selects(paths []patch.Path, key string) bool {
	doc := patch.Doc(`{"metadata":{"annotations":{` + string(patch.Quote([]byte(key))) + `:""}}}`)
	selected := false
	_, err := patch.Rewrite(doc, paths, func(_ string, value patch.Doc) (patch.Doc, error) {
		selected = true
		return value, nil
	})
	return selected || err != nil
}

// applied redacts the copy of a Secret that kubectl apply writes into an annotation. If the copy may have another form, applied replaces it whole.
func (o object) applied(annotation patch.Doc) patch.Doc {
	whole := o.replace(lastApplied, annotation)
	text, ok := patch.Unquote(annotation)
	if !ok {
		return whole
	}
	inner, err := patch.Canonical(text)
	if err != nil || !o.isOwnSecret(inner) {
		return whole
	}
	inner, err = patch.Rewrite(inner, o.paths, func(pointer string, value patch.Doc) (patch.Doc, error) {
		return o.replace(pointer, value), nil
	})
	if err != nil {
		return whole
	}
	return patch.Quote(inner)
}

// isOwnSecret reports whether a document is this Secret, with only known members, each in the form of the API.
func (o object) isOwnSecret(doc patch.Doc) bool {
	kind := false
	for key, value := range patch.Members(doc) {
		known := false
		switch string(key) {
		case "apiVersion":
			known = string(value) == `"v1"`
		case "kind":
			known = string(value) == `"Secret"`
			kind = true
		case "metadata":
			known = o.isOwnMetadata(value)
		case "data", "stringData":
			known = isObject(value)
		case "type":
			known = isText(value)
		case "immutable":
			known = isOneOf(value, "true", "false", "null")
		}
		if !known {
			return false
		}
	}
	return kind
}

func (o object) isOwnMetadata(doc patch.Doc) bool {
	for key, value := range patch.Members(doc) {
		known := false
		switch string(key) {
		case "name":
			known = isOneOf(value, string(patch.Quote([]byte(o.name))))
		case "namespace":
			known = isOneOf(value, string(patch.Quote([]byte(o.namespace))))
		case "labels":
			known = holdsTexts(value)
		case "annotations":
			known = isObject(value) // each of its values is replaced
		case "creationTimestamp":
			known = isOneOf(value, "null")
		}
		if !known {
			return false
		}
	}
	return isObject(doc)
}

// holdsTexts reports whether a value is an object of texts.
func holdsTexts(doc patch.Doc) bool {
	for _, value := range patch.Members(doc) {
		if !isText(value) {
			return false
		}
	}
	return isObject(doc)
}

func isObject(value patch.Doc) bool {
	return len(value) > 0 && value[0] == '{' || isOneOf(value, "null")
}

func isOneOf(value patch.Doc, texts ...string) bool {
	for _, text := range texts {
		if string(value) == text {
			return true
		}
	}
	return false
}

package words

import (
	"github.com/aymanbagabas/go-udiff"

	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/patch"
)

// Unified returns the difference between two versions as a unified diff of YAML, "" if there is none.
func Unified(title string, before, after patch.Doc, beforeName, afterName string, all bool) string {
	return udiff.Unified(label("a/", title, beforeName, before), label("b/", title, afterName, after), yamlOf(before, all), yamlOf(after, all))
}

func label(prefix, title, version string, doc patch.Doc) string {
	if doc == nil {
		return "/dev/null"
	}
	return prefix + render.Line(title) + "\t" + version
}

// yamlOf returns a version as YAML, without bookkeeping unless all is set.
func yamlOf(doc patch.Doc, all bool) string {
	if doc == nil {
		return ""
	}
	if !all {
		doc = field.WithoutBookkeeping(doc)
	}
	text, err := render.YAML(doc)
	if err != nil || render.Replaced(doc) != nil {
		return string(render.JSON(doc)) + "\n" // YAML would hide a difference.
	}
	return string(text)
}

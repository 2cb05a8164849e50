package ask

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
)

// FilterNames are the parameters of a Filter.
var FilterNames = []string{"namespace", "resource", "name", "label", "manager", "path", "type", "class"}

// A Filter selects deltas. Zero values do not bound, except those of Classes.
type Filter struct {
	Namespaces []string
	Resources  []string // as in deployments.apps
	Name       string   // * stands for any text
	Labels     labels.Selector
	Manager    string
	Path       string // JSON pointer
	Types      []delta.Type
	Classes    []class.Class // nil: all except heartbeats
}

// Filter reads a filter.
func (v Values) Filter() (f Filter, err error) {
	f = Filter{Namespaces: v.All("namespace"), Resources: v.All("resource"), Name: v.Text("name"), Manager: v.Text("manager"), Path: v.Text("path")}
	if slices.Contains(f.Namespaces, "") {
		return f, Bad("namespace is empty: omit it to select all namespaces and objects without one")
	}
	if text := v.Text("label"); text != "" {
		if f.Labels, err = labels.Parse(text); err != nil {
			return f, Bad("label=%s is no label selector: %v", Cut(text), err)
		}
	}
	if f.Path != "" && !strings.HasPrefix(f.Path, "/") {
		return f, Bad("path=%s is no JSON pointer: write it as /spec/replicas", Cut(f.Path))
	}
	if text := v.Text("type"); text != "" {
		if !slices.Contains(delta.TypeWords(), text) {
			return f, Bad("type=%s: use one of %s", Cut(text), strings.Join(delta.TypeWords(), ", "))
		}
		f.Types = []delta.Type{delta.Type(text)}
	}
	for _, text := range v.All("class") {
		if !class.Known(text) {
			return f, Bad("class=%s: use one of change, added, deleted, status, heartbeat, event, sync", Cut(text))
		}
		f.Classes = append(f.Classes, class.Class(text))
	}
	return f, nil
}

// Changes reports whether the filter bounds changes, and not only objects.
func (f *Filter) Changes() bool {
	return f.Labels != nil || f.Manager != "" || f.Path != "" || f.Types != nil || f.Classes != nil
}

// Like returns the name as a pattern of SQL's LIKE.
func (f *Filter) Like() string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`).Replace(f.Name)
}

// Named reports whether the filter selects a name.
func (f *Filter) Named(name string) bool {
	parts := strings.Split(f.Name, "*")
	if len(parts) == 1 {
		return f.Name == "" || f.Name == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

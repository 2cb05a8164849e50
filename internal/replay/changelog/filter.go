package changelog

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/selector"
	"github.com/kuberewind/kuberewind/internal/selection"
)

// filter selects the deltas that log shows.
type filter struct {
	allNamespaces, owned                  bool
	paths, managers, types, kinds, labels []string
	indices                               []string

	patterns []field.Pattern
	wanted   []delta.Type
	selects  selection.Selector
	indexed  []selector.Index
}

func (f *filter) addFlags(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "the whole cluster")
	flags.StringSliceVar(&f.kinds, "kind", nil, "only these types; same as the argument TYPE")
	flags.StringArrayVar(&f.paths, "path", nil, "only changes at or below a path, such as spec.replicas or 'spec.containers[*].image'")
	flags.StringSliceVar(&f.managers, "manager", nil, "only changes that these field managers wrote, if the record proves it; * matches any text")
	flags.StringSliceVar(&f.types, "type", nil, "only deltas of these types: Added, Updated, Deleted, Sync")
	flags.StringArrayVarP(&f.labels, "selector", "l", nil, "only objects with these labels, in the version or its predecessor")
	flags.BoolVar(&f.owned, "owned", false, "also objects that the named objects own, such as the ReplicaSets and Pods of a Deployment")
	flags.StringArrayVar(&f.indices, "index", nil, "only objects that an index holds under a value: name=value (namespace, label, owner, node, uid)")
}

// rejectEmptyLists returns an error for an empty list: it comes from an unset shell variable, and would select everything.
func rejectEmptyLists(flags *pflag.FlagSet) error {
	for _, name := range []string{"kind", "manager", "type"} {
		list, err := flags.GetStringSlice(name)
		if err != nil {
			return err
		}
		if flags.Changed(name) && len(list) == 0 {
			return fmt.Errorf("--%s is empty: give a value, or omit the flag", name)
		}
	}
	return nil
}

// validate parses the flags, and rejects invalid values.
func (f *filter) validate(cmd *cobra.Command) (err error) {
	if err := rejectEmptyLists(cmd.Flags()); err != nil {
		return env.Mistake(cmd, err)
	}
	if f.patterns, err = field.ParsePatterns(f.paths); err != nil {
		return err
	}
	for _, text := range f.managers {
		if _, err := path.Match(text, ""); err != nil {
			return fmt.Errorf("--manager %q: %w", text, err)
		}
	}
	if f.indexed, err = selector.ParseIndices(f.indices); err != nil {
		return err
	}
	if f.selects, err = selection.New(strings.Join(f.labels, ","), "", schema.GroupVersionKind{}, nil); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	if f.wanted, err = deltaTypes(f.types); err != nil {
		return env.Mistake(cmd, err)
	}
	return nil
}

func deltaTypes(names []string) ([]delta.Type, error) {
	known := delta.TypeWords()
	var types []delta.Type
	for _, name := range names {
		i := slices.IndexFunc(known, func(word string) bool { return strings.EqualFold(word, name) })
		if i < 0 {
			return nil, fmt.Errorf("--type %q: use one of %s", name, strings.Join(known, ", "))
		}
		types = append(types, delta.Type(known[i]))
	}
	return types, nil
}

// askedFor returns the resources that the arguments name.
func askedFor(targets []resource.Target) map[schema.GroupResource]bool {
	asked := map[schema.GroupResource]bool{}
	for _, t := range targets {
		asked[t.Resource.GroupResource()] = true
	}
	return asked
}

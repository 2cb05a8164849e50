package completion

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/known"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

// arguments completes TYPE[,TYPE] [NAME…] and TYPE/NAME….
func (c *completer) arguments(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	word, name, slashed := strings.Cut(typed, "/")
	names := strings.Contains(cmd.Use, "NAME")
	pairs := names && !strings.Contains(cmd.Use, "[NAME")
	if len(args) > 0 {
		pairs = strings.Contains(args[0], "/")
	}
	switch {
	case slashed && names:
		return c.offered(cmd, args, word+"/", func(r *reading) (offer, error) { return r.named(word, name, args) })
	case pairs:
		return c.offered(cmd, args, "", func(r *reading) (offer, error) { return r.pairs(typed) })
	case len(args) == 0:
		before, last := splitList(typed)
		return c.offered(cmd, args, before, func(r *reading) (offer, error) { return r.types(last) })
	case names && !strings.Contains(args[0], ","):
		return c.offered(cmd, args, "", func(r *reading) (offer, error) { return r.named(args[0], typed, args[1:]) })
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// pairs returns types, each followed by the slash before a name.
func (r *reading) pairs(typed string) (offer, error) {
	found, err := r.types(typed)
	for i, word := range found.words {
		name, description, _ := strings.Cut(word, "\t")
		found.words[i] = name + "/\t" + description
	}
	found.open = true
	return found, err
}

// types returns the resources that the record holds. If the typed text begins no resource, it returns short names, kinds and
// categories.
func (r *reading) types(typed string) (offer, error) {
	catalog, err := r.catalog()
	if err != nil {
		return offer{}, err
	}
	var plurals, others []string
	seen := map[string]bool{}
	for _, each := range catalog.Resources {
		name := each.Resource
		if seen[name] || strings.Contains(typed, ".") {
			name = each.String() // The plain name is that of another resource.
		}
		seen[each.Resource] = true
		if len(harmless([]string{name}, forPatterns)) == 0 {
			continue
		}
		plurals = append(plurals, name+"\t"+render.Line(each.Kind))
		for _, other := range harmless(slices.Concat(each.ShortNames, each.Categories, []string{each.Singular, strings.ToLower(each.Kind)}), forPatterns) {
			others = append(others, other+"\t"+name)
		}
	}
	words := startingWith(plurals, typed)
	if len(words) == 0 {
		words = startingWith(others, typed)
	}
	slices.Sort(words)
	words = slices.CompactFunc(words, func(a, b string) bool { return before(a, "\t") == before(b, "\t") })
	return offer{words: words}, nil
}

func before(text, mark string) string {
	text, _, _ = strings.Cut(text, mark)
	return text
}

// named returns the names of objects of a type that the line does not have yet.
func (r *reading) named(word, typed string, given []string) (offer, error) {
	found, err := r.namesOf(word, typed)
	found.words = slices.DeleteFunc(found.words, func(name string) bool {
		return slices.Contains(given, name) || slices.Contains(given, word+"/"+name)
	})
	return found, err
}

func (r *reading) namesOf(word, typed string) (offer, error) {
	catalog, err := r.catalog()
	if err != nil {
		return offer{}, err
	}
	found, err := catalog.Lookup(word)
	if err != nil {
		return offer{}, err
	}
	lives := r.lives
	lives.Prefix = typed
	if lives.Streams = found.StreamIDs(""); found.Namespaced {
		if lives.Namespace, err = r.namespace(); err != nil {
			return offer{}, err
		}
		lives.Streams = found.StreamIDs(lives.Namespace)
	}
	names, more, err := known.Names(r.ctx, r.rec.Record, lives)
	return offer{words: harmless(names, forPatterns), more: more}, err
}

// targets returns the targets of the arguments typed so far. If a flag precedes the arguments, there are none.
func (r *reading) targets() ([]resource.Target, string, error) {
	namespace, err := r.namespace()
	if err != nil {
		return nil, "", err
	}
	catalog, err := r.catalog()
	if err != nil {
		return nil, "", err
	}
	targets, err := catalog.Targets(r.args)
	return targets, namespace, err
}

func named(targets []resource.Target) bool {
	return slices.ContainsFunc(targets, func(t resource.Target) bool { return len(t.Names) > 0 })
}

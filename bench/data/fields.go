package data

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// listKeys are the members by which managedFields name the items of a list. Lists of objects that are not here are owned whole.
var listKeys = map[string][]string{
	"containers": {"name"}, "env": {"name"}, "volumes": {"name"}, "conditions": {"type"}, "addresses": {"type"}, "ports": {"containerPort", "protocol"},
	"volumeMounts": {"mountPath"}, "podIPs": {"ip"}, "hostIPs": {"ip"}, "ownerReferences": {"uid"},
}

// managed is one entry of managedFields, for who has written part of an object.
func managed(manager, apiVersion, at, subresource, part string) (string, error) {
	var owned map[string]any
	if err := json.Unmarshal([]byte(part), &owned); err != nil {
		return "", fmt.Errorf("what %s manages: %w", manager, err)
	}
	if subresource != "" {
		subresource = fmt.Sprintf(`,"subresource":%q`, subresource)
	}
	return fmt.Sprintf(`{"manager":%q,"operation":"Update","apiVersion":%q,"time":%q,"fieldsType":"FieldsV1","fieldsV1":%s%s}`,
		manager, apiVersion, at, fieldsOf(owned, 0), subresource), nil
}

// fieldsOf names what there is as FieldsV1 does. Members below the two outer levels, metadata, spec and status and their
// members, are owned one by one as well.
func fieldsOf(value map[string]any, depth int) string {
	var all []string
	if depth > 1 {
		all = append(all, `".":{}`)
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		all = append(all, fmt.Sprintf(`%s:%s`, strconv.Quote("f:"+name), fieldsOfValue(name, value[name], depth+1)))
	}
	return "{" + strings.Join(all, ",") + "}"
}

func fieldsOfValue(name string, value any, depth int) string {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 {
			return fieldsOf(value, depth)
		}
	case []any:
		if keys, ok := listKeys[name]; ok {
			return fieldsOfList(value, keys, depth)
		}
	}
	return "{}"
}

func fieldsOfList(list []any, keys []string, depth int) string {
	var all []string
	for _, item := range list {
		item, ok := item.(map[string]any)
		if !ok {
			return "{}"
		}
		named := map[string]any{}
		for _, key := range keys {
			named[key] = item[key]
		}
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false) // holes are between < and >
		_ = encoder.Encode(named)    // a builder takes everything, and it was JSON before
		all = append(all, strconv.Quote("k:"+strings.TrimSpace(text.String()))+":"+fieldsOf(item, depth+1))
	}
	return "{" + strings.Join(all, ",") + "}"
}

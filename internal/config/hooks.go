package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// toDuration parses a duration. It refuses a number without a unit, which would mean nanoseconds.
func toDuration(_, to reflect.Type, value any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() {
		return value, nil
	}
	if d, ok := value.(time.Duration); ok {
		return d, nil
	}
	text := fmt.Sprint(value)
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a duration with a unit, such as 10ms, 25s or 5m", text)
	}
	return d, nil
}

// stringToRules splits a list that came from the environment. Rules hold commas in label selectors, so white space
// separates them.
func stringToRules(from, to reflect.Type, value any) (any, error) {
	if from.Kind() != reflect.String || to != reflect.TypeFor[[]string]() {
		return value, nil
	}
	return strings.Fields(value.(string)), nil
}

// Masked returns the configuration without passwords, for output and for the record.
func (c Config) Masked() Config {
	c.Database = MaskURL(c.Database)
	return c
}

// Settings returns the configuration by key, as in a configuration file.
func (c Config) Settings() map[string]any {
	settings := map[string]any{}
	v := reflect.ValueOf(c)
	for _, field := range reflect.VisibleFields(v.Type()) {
		if field.Anonymous {
			continue // its fields follow
		}
		value := v.FieldByIndex(field.Index).Interface()
		if d, ok := value.(time.Duration); ok {
			value = d.String()
		}
		settings[field.Tag.Get("mapstructure")] = value
	}
	return settings
}

package telemetry

import (
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Description is a metric's name and help text.
type Description struct{ Name, Help string }

var descriptor = regexp.MustCompile(`fqName: "(kuberewind_[^"]+)", help: "([^"]*)"`)

// Describe returns the recorder's own metrics, sorted by name.
func Describe() []Description {
	m := NewMetrics()
	zero := func() float64 { return 0 }
	m.Queue(zero, zero, zero, zero)
	m.Spool(zero, zero, zero)
	m.OpenGaps(zero)
	var found []Description
	descriptors := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptors)
		m.Registry.Describe(descriptors)
	}()
	for d := range descriptors {
		// A Desc has no other method that returns its name.
		if match := descriptor.FindStringSubmatch(d.String()); match != nil {
			found = append(found, Description{Name: match[1], Help: match[2]})
		}
	}
	slices.SortFunc(found, func(a, b Description) int { return strings.Compare(a.Name, b.Name) })
	return found
}

package env

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/pflag"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/when"
)

// InstantVar adds a flag that takes an instant. To give it twice is an error: the two cannot both be meant.
func InstantVar(flags *pflag.FlagSet, value *string, name, byDefault, usage string) {
	*value = byDefault
	flags.Var(&instantFlag{value: value}, name, usage)
}

// instantFlag is the text of an instant. The text is read once the settings are: they say in which zone it is meant.
type instantFlag struct {
	value   *string
	set     bool
	repeats bool // it may be set again
}

func (f *instantFlag) String() string { return *f.value }

// Type is what the help says the flag takes.
func (f *instantFlag) Type() string { return "instant" }

func (f *instantFlag) Set(text string) error {
	if text == "" && !f.repeats {
		return errors.New("it is empty: give an instant, or omit the flag")
	}
	if f.set && !f.repeats {
		return fmt.Errorf("the flag is set twice, first to %q; set it once", *f.value)
	}
	*f.value, f.set = text, true
	return nil
}

// DurationVar adds a flag that takes a duration as people type it.
func DurationVar(flags *pflag.FlagSet, value *time.Duration, name string, byDefault time.Duration, usage string) {
	*value = byDefault
	flags.Var((*durationFlag)(value), name, usage)
}

type durationFlag time.Duration

func (f *durationFlag) String() string { return time.Duration(*f).String() }

// Type is what the help says the flag takes.
func (f *durationFlag) Type() string { return "duration" }

func (f *durationFlag) Set(text string) error {
	d, err := when.Duration(text)
	*f = durationFlag(d)
	return err
}

// LetRepeat has flags take an instant again and again: cobra reads a line that it completes twice.
func LetRepeat(flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if instant, ok := flag.Value.(*instantFlag); ok {
			instant.repeats = true
		}
	})
}

// Instant reads an instant as people type it. A duration before now becomes a time: asked about twice, it is the same twice.
func (e *Env) Instant(text string) (history.Instant, error) {
	return when.Clock{Now: e.Now(), Zone: e.Zone()}.Parse(text)
}

// Zone is the zone in which times are read and printed: the local one, or UTC.
func (s *Settings) Zone() *time.Location {
	if s.UTC {
		return time.UTC
	}
	return time.Local
}

// InZone has the times of a text in the zone of what is printed: notes and errors of the record have them in UTC. Quoted text
// was typed, and stays.
func (s *Settings) InZone(text string) string { return inZone(text, s.Zone()) }

var stampInUTC = regexp.MustCompile(`"?\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b`)

func inZone(text string, zone *time.Location) string {
	return stampInUTC.ReplaceAllStringFunc(text, func(stamp string) string {
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil { // it is in quotes, or of no day
			return stamp
		}
		return at.In(zone).Format(time.RFC3339Nano)
	})
}

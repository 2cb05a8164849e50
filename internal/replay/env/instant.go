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

// InstantVar adds a flag that takes an instant. To set it twice is an error, because only one value can be meant.
func InstantVar(flags *pflag.FlagSet, value *string, name, byDefault, usage string) {
	*value = byDefault
	flags.Var(&instantFlag{value: value}, name, usage)
}

// instantFlag holds the text of an instant. The command parses it after the settings, which give the zone.
type instantFlag struct {
	value   *string
	set     bool
	repeats bool // it may be set twice
}

func (f *instantFlag) String() string { return *f.value }

// Type returns the name of the value in the help.
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

// DurationVar adds a flag that takes a duration in the forms of users.
func DurationVar(flags *pflag.FlagSet, value *time.Duration, name string, byDefault time.Duration, usage string) {
	*value = byDefault
	flags.Var((*durationFlag)(value), name, usage)
}

type durationFlag time.Duration

func (f *durationFlag) String() string { return time.Duration(*f).String() }

// Type returns the name of the value in the help.
func (f *durationFlag) Type() string { return "duration" }

func (f *durationFlag) Set(text string) error {
	d, err := when.Duration(text)
	*f = durationFlag(d)
	return err
}

// LetRepeat allows flags to take an instant several times: cobra parses a line twice when it completes it.
func LetRepeat(flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if instant, ok := flag.Value.(*instantFlag); ok {
			instant.repeats = true
		}
	})
}

// Instant parses an instant in the forms of users. It converts a duration before now to a time, so that all uses have the
// same instant.
func (e *Env) Instant(text string) (history.Instant, error) {
	return when.Clock{Now: e.Now(), Zone: e.Zone()}.Parse(text)
}

// Zone returns the zone in which times are parsed and printed: the local one, or UTC.
func (s *Settings) Zone() *time.Location {
	if s.UTC {
		return time.UTC
	}
	return time.Local
}

// InZone converts the times in a text to the zone of the output: notes and errors of the record have UTC. It keeps times in
// quotes, because the user typed them.
func (s *Settings) InZone(text string) string { return inZone(text, s.Zone()) }

var stampInUTC = regexp.MustCompile(`"?\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b`)

func inZone(text string, zone *time.Location) string {
	return stampInUTC.ReplaceAllStringFunc(text, func(stamp string) string {
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil { // it is in quotes, or its day does not exist
			return stamp
		}
		return at.In(zone).Format(time.RFC3339Nano)
	})
}

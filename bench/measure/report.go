package measure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// A Report is what was measured on one machine, of one size, in one run or in several. Figures depend on the machine; ratios do not, much.
type Report struct {
	Seed     uint64            `json:"seed"`
	Size     string            `json:"size"` // quick, middle, full or largest
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"`        // of what is measured with and against
	Results  []*Result         `json:"results"`         // by measure
	Done     []string          `json:"done"`            // numbers of measures that are complete
	Begun    *Result           `json:"begun,omitempty"` // the whole rounds of the experiment that a run was interrupted at
}

// An Origin says how a result came about.
type Origin struct {
	Measures []string  `json:"measures"` // numbers of those that it is a part of
	Date     time.Time `json:"date"`     // of its end
	Version  string    `json:"version"`  // of this project
	Command  string    `json:"command"`
}

// A Result is what an experiment gave.
type Result struct {
	Name       string       `json:"name"`
	Title      string       `json:"title"`
	Data       string       `json:"data"`
	Origin     Origin       `json:"origin"`
	Rounds     int          `json:"rounds"`
	Quantities []Quantity   `json:"quantities"`
	Ways       []*Measured  `json:"ways"`
	Again      *Measured    `json:"again,omitempty"` // the first way once more, where something has to hold
	Judged     []*Judgement `json:"judged"`
}

// Measured is what the runs of a way gave, in their order.
type Measured struct {
	Name   string               `json:"name"`
	Factor float64              `json:"factor,omitempty"`
	Values map[string][]float64 `json:"values"` // by quantity
}

// Add adds what one more run gave.
func (m *Measured) Add(values Values) {
	if m.Values == nil {
		m.Values = make(map[string][]float64)
	}
	for name, v := range values {
		m.Values[name] = append(m.Values[name], v)
	}
}

// whole is the number of rounds of the ways that are run in all of them.
func (r *Result) whole() (rounds int) {
	for _, values := range r.Ways[0].Values {
		rounds = max(rounds, len(values))
	}
	return rounds
}

// looked reports whether the values are looks at something that ran once ([Run.DoOnce]): that of one way has nothing to do with that of another in the same place.
func (r *Result) looked() bool {
	return r.Rounds == 1 && slices.ContainsFunc(r.Ways, func(m *Measured) bool {
		for _, values := range m.Values {
			if len(values) > 1 {
				return true
			}
		}
		return false
	})
}

// each puts together, by round, what several ways gave. The one value of a way that is run once goes with every round of the
// others. It gives nothing if values are no rounds, or if their rounds are not known.
func (r *Result) each(ways ...[]float64) (rounds [][]float64) {
	if r.looked() {
		return nil
	}
	n := 1
	for _, values := range ways {
		n = max(n, len(values))
	}
	for round := range n {
		together := make([]float64, len(ways))
		for i, values := range ways {
			switch len(values) {
			case n:
				together[i] = values[round]
			case 1:
				together[i] = values[0]
			default:
				return nil
			}
		}
		rounds = append(rounds, together)
	}
	return rounds
}

func (r *Result) valuesOf(way, quantity string) []float64 {
	i := slices.IndexFunc(r.Ways, func(m *Measured) bool { return m.Name == way })
	if i < 0 {
		return nil
	}
	return r.Ways[i].Values[quantity]
}

func (r *Result) unit(quantity string) string {
	for _, q := range r.Quantities {
		if q.Name == quantity {
			return q.Unit
		}
	}
	return ""
}

// Broken names what must hold and does not, of some measures, or of all if none is named. A result within noise is not among
// them: the run does not show it.
func (r *Report) Broken(of ...string) (broken []string) {
	for _, result := range r.Results {
		for _, j := range result.Judged {
			if j.Verdict == DoesNotHold && (len(of) == 0 || slices.Contains(of, j.Number)) {
				broken = append(broken, fmt.Sprintf("%s %s: %s", j.Number, j.What, j.value(j.Value)))
			}
		}
	}
	return broken
}

// add puts a result where it belongs, in the place of an older one of the same name.
func (r *Report) add(result *Result) {
	r.Begun = nil
	r.Results = append(slices.DeleteFunc(r.Results, func(old *Result) bool { return old.Name == result.Name }), result)
	slices.SortStableFunc(r.Results, func(a, b *Result) int { return cmp.Compare(a.Origin.first(), b.Origin.first()) })
}

// first is the number of the first measure.
func (o *Origin) first() int {
	if len(o.Measures) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(o.Measures[0]) // what is none comes first
	return n
}

// complete notes that measures are. Their results of other names were of other data, and go.
func (r *Report) complete(measures, names []string) {
	r.keepOnly(measures, names)
	r.reopen(measures)
	r.Done = append(r.Done, measures...)
}

func (r *Report) keepOnly(measures, names []string) {
	r.Results = slices.DeleteFunc(r.Results, func(old *Result) bool {
		return slices.Equal(old.Origin.Measures, measures) && !slices.Contains(names, old.Name)
	})
}

func (r *Report) reopen(measures []string) {
	r.Done = slices.DeleteFunc(r.Done, func(n string) bool { return slices.Contains(measures, n) })
}

// OfOthers are the measures whose results are not of a version of this project.
func (r *Report) OfOthers(version string) (measures []string) {
	for other, of := range r.byVersion() {
		if other != version {
			measures = append(measures, of...)
		}
	}
	slices.SortFunc(measures, ByNumber)
	return slices.Compact(measures)
}

// byVersion are the measures that there are results of, by the version of this project that has measured them.
func (r *Report) byVersion() map[string][]string {
	all := make(map[string][]string)
	for _, result := range r.Results {
		for _, n := range result.Origin.Measures {
			if of := all[result.Origin.Version]; !slices.Contains(of, n) {
				all[result.Origin.Version] = append(of, n)
			}
		}
	}
	return all
}

// ByNumber compares the numbers of two measures.
func ByNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// Missing are those of the measures that are not complete.
func (r *Report) Missing(of []string) (missing []string) {
	for _, n := range of {
		if !slices.Contains(r.Done, n) {
			missing = append(missing, n)
		}
	}
	return missing
}

// Continue reads what Keep has written, for more to be added to it, or gives the report as it is if there is no such file.
// Results that do not go together are an error.
func (r *Report) Continue(path string) (*Report, error) {
	was, err := Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	for name, version := range r.Versions {
		if old := was.Versions[name]; old != version {
			return nil, fmt.Errorf("%s was measured with %s %s, and this is %s: name another file, or remove that one", path, name, old, version)
		}
	}
	if was.Seed != r.Seed || was.Size != r.Size || was.Machine != r.Machine {
		return nil, fmt.Errorf("%s is of size %s, seed %d, on %s, and this is %s, %d, on %s: name another file, or remove that one",
			path, was.Size, was.Seed, was.Machine, r.Size, r.Seed, r.Machine)
	}
	return was, nil
}

// measuredOn notes PostgreSQL's version, which only shows once it runs. One other than that of the results that there are is an error.
func (r *Report) measuredOn(version string) error {
	const name = "PostgreSQL"
	if old := r.Versions[name]; old != "" && old != version {
		return fmt.Errorf("the results that there are were measured with %s %s, and this is %s: name another file for these, or remove that one", name, old, version)
	}
	if r.Versions == nil {
		r.Versions = make(map[string]string)
	}
	r.Versions[name] = version
	return nil
}

// Keep writes the report into a file. One that is there is replaced by a whole one, or stays.
func (r *Report) Keep(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".report-")
	if err != nil {
		return err
	}
	err = errors.Join(r.JSON(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("keep the report in %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// JSON writes everything that was measured.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// Read reads what Keep wrote.
func Read(path string) (*Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is no report of this suite: %w", path, err)
	}
	if r.Versions == nil {
		r.Versions = make(map[string]string)
	}
	return r, nil
}

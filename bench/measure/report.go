package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A Report is what one run measured. Figures depend on the machine; ratios within one report do not, much.
type Report struct {
	Date     time.Time         `json:"date"`
	Command  []string          `json:"command"`
	Seed     uint64            `json:"seed"`
	Size     string            `json:"size"` // quick or full
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"`
	Results  []*Result         `json:"results"`
}

// A Result is what an experiment gave.
type Result struct {
	Name       string       `json:"name"`
	Title      string       `json:"title"`
	Data       string       `json:"data"`
	Rounds     int          `json:"rounds"`
	Quantities []Quantity   `json:"quantities"`
	Same       []*Measured  `json:"same"` // the first way against itself
	Ways       []*Measured  `json:"ways"`
	Judged     []*Judgement `json:"judged"`
}

// Measured is what the runs of a way gave, in their order.
type Measured struct {
	Name   string               `json:"name"`
	Factor float64              `json:"factor,omitempty"`
	Values map[string][]float64 `json:"values"` // by quantity
}

func (m *Measured) add(values Values) {
	if m.Values == nil {
		m.Values = make(map[string][]float64)
	}
	for name, v := range values {
		m.Values[name] = append(m.Values[name], v)
	}
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

// Broken names what must hold and does not. What is within noise is not among it: the run cannot tell.
func (r *Report) Broken() (broken []string) {
	for _, result := range r.Results {
		for _, j := range result.Judged {
			if j.Verdict == DoesNotHold {
				broken = append(broken, fmt.Sprintf("%s %s: %s", j.Number, j.What, j.value(j.Value)))
			}
		}
	}
	return broken
}

// Keep writes the report into a file of its own, named by its date, and tells where.
func (r *Report) Keep(dir string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(dir, r.Date.UTC().Format("20060102T150405Z")+".json")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	if err := errors.Join(r.JSON(f), f.Close()); err != nil {
		return "", fmt.Errorf("keep the report in %s: %w", path, err)
	}
	return path, nil
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
	return r, nil
}

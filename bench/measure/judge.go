package measure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Verdict is what a measurement says about a bound.
type Verdict string

// The verdicts.
const (
	Holds       Verdict = "holds"
	DoesNotHold Verdict = "does not hold"
	WithinNoise Verdict = "within noise" // the bound is nearer than the noise floor
	Reported    Verdict = "reported"     // there is no bound
)

// A Judgement is one number that was compared with what it must reach.
type Judgement struct {
	Number   string `json:"number"`
	What     string `json:"what"`
	Quantity string `json:"quantity"`
	// Value is made of medians. Low and High are the smallest and the largest of single rounds.
	Value   float64 `json:"value"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Unit    string  `json:"unit,omitempty"`    // of a difference; a ratio has none
	Noise   float64 `json:"noise"`             // the floor: of a ratio as a share of it, of a difference in its unit
	AtLeast float64 `json:"atLeast,omitempty"` // of both bounds at most one is set
	AtMost  float64 `json:"atMost,omitempty"`
	Aim     float64 `json:"aim,omitempty"`
	Verdict Verdict `json:"verdict"`
}

// Bound reports whether there is something to reach.
func (j *Judgement) Bound() bool { return j.AtLeast != 0 || j.AtMost != 0 }

// AimReached reports whether there is an aim and the value is there.
func (j *Judgement) AimReached() bool {
	if j.Aim == 0 {
		return false
	}
	if j.AtMost != 0 {
		return j.Value <= j.Aim
	}
	return j.Value >= j.Aim
}

// Median gives the middle value, or the mean of the two in the middle; 0 of none.
func Median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func (r *Result) judge(compare []Comparison, grow []Growth) error {
	for _, c := range compare {
		if c.By == "" {
			c.By = Ratio
		}
		of, to := r.valuesOf(c.Of, c.Quantity), r.valuesOf(c.To, c.Quantity)
		if len(of) == 0 || len(to) == 0 {
			return fmt.Errorf("nothing was measured to compare %s of %q with that of %q", c.Quantity, c.Of, c.To)
		}
		j := &Judgement{Number: c.Number, What: c.What, Quantity: c.Quantity, AtLeast: c.AtLeast, AtMost: c.AtMost, Aim: c.Aim, Noise: r.noise(c.Quantity, c.By)}
		if j.Value = c.By.of(Median(of), Median(to)); math.IsNaN(j.Value) || math.IsInf(j.Value, 0) {
			return fmt.Errorf("%s: %s of %q is 0, and nothing can be compared with that", c.What, c.Quantity, c.To)
		}
		if c.By == Difference {
			j.Unit = r.unit(c.Quantity)
		}
		j.Low, j.High = math.Inf(1), math.Inf(-1)
		for i := range min(len(of), len(to)) {
			j.Low, j.High = min(j.Low, c.By.of(of[i], to[i])), max(j.High, c.By.of(of[i], to[i]))
		}
		j.decide(c.By)
		r.Judged = append(r.Judged, j)
	}
	for _, g := range grow {
		if err := r.judgeGrowth(g); err != nil {
			return err
		}
	}
	return nil
}

func (o Operation) of(a, b float64) float64 {
	if o == Difference {
		return a - b
	}
	return a / b
}

// decide lets the value be off by the noise floor, either way.
func (j *Judgement) decide(by Operation) {
	least, most := j.Value/(1+j.Noise), j.Value*(1+j.Noise)
	if by == Difference {
		least, most = j.Value-j.Noise, j.Value+j.Noise
	}
	switch {
	case !j.Bound():
		j.Verdict = Reported
	case j.AtLeast != 0 && least >= j.AtLeast, j.AtMost != 0 && most <= j.AtMost:
		j.Verdict = Holds
	case j.AtLeast != 0 && most < j.AtLeast, j.AtMost != 0 && least > j.AtMost:
		j.Verdict = DoesNotHold
	default:
		j.Verdict = WithinNoise
	}
}

const (
	deals    = 1000 // of the runs of one way to two
	likely   = 0.95 // the share of deals whose medians are no further apart than the noise floor
	hopeless = 1e6  // where one of the medians is 0; infinity cannot be kept
	seedHere = 1    // a report that is judged again says the same
)

// noise is how far apart two medians of one way are, in 95 of 100 ways to deal its runs out to two, of each round one to either: rounds may differ, as
// instants do that are asked for. One pair of medians would be a single throw of dice; all of the deals say more. It is 0 where nothing has to hold.
func (r *Result) noise(quantity string, by Operation) float64 {
	if r.Again == nil {
		return 0
	}
	one, other := r.Ways[0].Values[quantity], r.Again.Values[quantity]
	a, b := slices.Clone(one), slices.Clone(other)
	random := rand.New(rand.NewPCG(seedHere, seedHere))
	apart := make([]float64, deals)
	for i := range apart {
		for round := range min(len(a), len(b)) {
			if random.IntN(2) == 0 {
				a[round], b[round] = b[round], a[round]
			}
		}
		switch first, second := Median(a), Median(b); {
		case first == second:
		case by == Difference:
			apart[i] = math.Abs(first - second)
		default:
			apart[i] = min(max(first, second)/min(first, second)-1, hopeless)
		}
	}
	slices.Sort(apart)
	return apart[int(likely*deals)-1]
}

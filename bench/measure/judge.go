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
	// Value is made of medians. Low and High are the smallest and the largest value of a single round; a way that ran once
	// counts in every round. Both are 0 if it is Unpaired: nothing was run in rounds, or a round gives no number.
	Value    float64 `json:"value"`
	Low      float64 `json:"low,omitempty"`
	High     float64 `json:"high,omitempty"`
	Unpaired bool    `json:"unpaired,omitempty"`
	Unit     string  `json:"unit,omitempty"`    // of a difference; a ratio has none
	Noise    float64 `json:"noise"`             // the floor: of a ratio as a share of it, of a difference in its unit
	AtLeast  float64 `json:"atLeast,omitempty"` // of both bounds at most one is set
	AtMost   float64 `json:"atMost,omitempty"`
	Aim      float64 `json:"aim,omitempty"`
	Verdict  Verdict `json:"verdict"`
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
		if c.By == Alone {
			c.To = c.Of
		}
		of, to := r.valuesOf(c.Of, c.Quantity), r.valuesOf(c.To, c.Quantity)
		if len(of) == 0 || len(to) == 0 {
			return fmt.Errorf("nothing was measured to compare %s of %q with that of %q", c.Quantity, c.Of, c.To)
		}
		j := &Judgement{Number: c.Number, What: c.What, Quantity: c.Quantity, AtLeast: c.AtLeast, AtMost: c.AtMost, Aim: c.Aim, Noise: r.floor(c)}
		if j.Value = c.By.of(Median(of), Median(to)); !isNumber(j.Value) {
			return fmt.Errorf("%s: %s of %q is 0, and nothing can be compared with that", c.What, c.Quantity, c.To)
		}
		if c.By != Ratio {
			j.Unit = r.unit(c.Quantity)
		}
		j.single(r.each(of, to), func(round []float64) float64 { return c.By.of(round[0], round[1]) })
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

// single notes the smallest and the largest value of single rounds.
func (j *Judgement) single(rounds [][]float64, value func(round []float64) float64) {
	values := make([]float64, len(rounds))
	for i, round := range rounds {
		values[i] = value(round)
	}
	if j.Unpaired = len(values) == 0 || slices.ContainsFunc(values, func(v float64) bool { return !isNumber(v) }); j.Unpaired {
		return
	}
	j.Low, j.High = slices.Min(values), slices.Max(values)
}

// isNumber reports whether a value can be kept: infinity cannot, as JSON has none.
func isNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (o Operation) of(a, b float64) float64 {
	switch o {
	case Difference:
		return a - b
	case Alone:
		return a
	default:
		return a / b
	}
}

// decide lets the value be off by the noise floor, either way.
func (j *Judgement) decide(by Operation) {
	least, most := j.Value/(1+j.Noise), j.Value*(1+j.Noise)
	if by != Ratio {
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
	deals    = 1000 // of the runs of one way, or of the looks at it, to two
	likely   = 0.95 // the share of deals whose medians are no further apart than the noise floor
	hopeless = 1e6  // where one of the medians is 0; infinity cannot be kept
	seedHere = 1    // a report that is judged again says the same
)

// floor is the noise floor of a comparison. For looks it is the distance between medians of one way's own looks, on the side
// where that is larger.
func (r *Result) floor(c Comparison) float64 {
	if r.looked() && c.bound() {
		return max(scatter(r.valuesOf(c.Of, c.Quantity), c.By), scatter(r.valuesOf(c.To, c.Quantity), c.By))
	}
	return r.noise(c.Quantity, c.By)
}

// noise is how far apart two medians of one way are in 95 of 100 ways to deal its runs out to two sides. Each side gets one run
// of each round, because rounds may differ, as their instants do. One pair of medians would be a single throw of dice; all
// deals say more. It is 0 if no claim has to hold.
func (r *Result) noise(quantity string, by Operation) float64 {
	if r.Again == nil {
		return 0
	}
	a, b := slices.Clone(r.Ways[0].Values[quantity]), slices.Clone(r.Again.Values[quantity])
	return by.dealt(func(random *rand.Rand) (first, second float64) {
		for round := range min(len(a), len(b)) {
			if random.IntN(2) == 0 {
				a[round], b[round] = b[round], a[round]
			}
		}
		return Median(a), Median(b)
	})
}

// scatter is how far apart the medians of two halves of the looks at one way are, in 95 of 100 ways to deal them out. It does
// not include a true difference between two ways, as looks of both together would. Half of the looks scatter more than all
// looks, so the result is rather too large.
func scatter(looks []float64, by Operation) float64 {
	all := slices.Clone(looks)
	return by.dealt(func(random *rand.Rand) (first, second float64) {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return Median(all[:len(all)/2]), Median(all[len(all)/2:])
	})
}

// dealt is how far apart two medians are in 95 of 100 deals.
func (o Operation) dealt(deal func(*rand.Rand) (first, second float64)) float64 {
	random := rand.New(rand.NewPCG(seedHere, seedHere))
	apart := make([]float64, deals)
	for i := range apart {
		apart[i] = o.apart(deal(random))
	}
	slices.Sort(apart)
	return apart[int(likely*deals)-1]
}

// apart is the distance of two values: of a ratio as a share of the smaller one.
func (o Operation) apart(a, b float64) float64 {
	switch {
	case a == b:
		return 0
	case o != Ratio:
		return math.Abs(a - b)
	default:
		return min(max(a, b)/min(a, b)-1, hopeless)
	}
}

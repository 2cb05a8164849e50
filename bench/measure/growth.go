package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// largestStep is how much more a cost may grow from one size to the next than the size itself. A cache that is outgrown makes
// it some per cent; an algorithm of a higher order makes it nearly as much as the sizes differ.
const largestStep = 1.25

// judgeGrowth fits cost = a · factorᵉ to the medians. The exponent e is 1 if the cost grows with the input, less if a part of
// the cost is fixed, and may not be more. Then it finds the largest step between two neighbours. It does the same for single
// rounds: the exponent of each, and its step between those two sizes.
func (r *Result) judgeGrowth(g Growth) error {
	var sizes []*Measured
	for _, m := range r.Ways {
		if m.Factor > 0 && len(m.Values[g.Quantity]) > 0 {
			sizes = append(sizes, m)
		}
	}
	slices.SortFunc(sizes, func(a, b *Measured) int { return cmp.Compare(a.Factor, b.Factor) })
	if len(sizes) < 2 || sizes[0].Factor == sizes[len(sizes)-1].Factor {
		return fmt.Errorf("%s: growth needs two sizes or more", g.What)
	}
	var factors, costs []float64
	var runs [][]float64
	for _, m := range sizes {
		cost := Median(m.Values[g.Quantity])
		if cost <= 0 {
			return fmt.Errorf("%s: %s of %q is 0, so its growth cannot be computed", g.What, g.Quantity, m.Name)
		}
		factors, costs, runs = append(factors, m.Factor), append(costs, cost), append(runs, m.Values[g.Quantity])
	}
	rounds := r.each(runs...)
	noise := r.noise(g.Quantity, Ratio)
	// An exponent is off by what an end of its line is off, over the line's length.
	off := math.Log1p(noise) / math.Log(factors[len(factors)-1]/factors[0])
	exponent := &Judgement{
		Number: g.Number, What: g.What + ": exponent", Quantity: g.Quantity, Value: fitted(factors, costs), Unit: exponentUnit, Noise: off, AtMost: 1,
	}
	exponent.single(rounds, func(costs []float64) float64 { return fitted(factors, costs) })
	exponent.decide(Difference)

	largest := 1
	for i := range factors[1:] {
		if stepTo(i+1, factors, costs) > stepTo(largest, factors, costs) {
			largest = i + 1
		}
	}
	step := &Judgement{
		Number: g.Number, What: fmt.Sprintf("%s: largest step, %s to %s", g.What, sizes[largest-1].Name, sizes[largest].Name), Quantity: g.Quantity,
		Value: stepTo(largest, factors, costs), Noise: noise, AtMost: largestStep,
	}
	step.single(rounds, func(costs []float64) float64 { return stepTo(largest, factors, costs) })
	step.decide(Ratio)
	r.Judged = append(r.Judged, exponent, step)
	return nil
}

// stepTo is how much more the cost grows from the size before to the i-th than the size.
func stepTo(i int, factors, costs []float64) float64 {
	return costs[i] / costs[i-1] / (factors[i] / factors[i-1])
}

// fitted is the exponent of the line that fits best through costs over factors.
func fitted(factors, costs []float64) float64 {
	xs, ys := make([]float64, len(factors)), make([]float64, len(factors))
	for i := range factors {
		xs[i], ys[i] = math.Log(factors[i]), math.Log(costs[i])
	}
	return math.Round(1000*slope(xs, ys)) / 1000 // what is beyond that is the arithmetic's
}

// exponentUnit marks a judgement whose value is an exponent.
const exponentUnit = "exponent"

// slope is that of the line with the least squares.
func slope(xs, ys []float64) float64 {
	n := float64(len(xs))
	var sx, sy, sxx, sxy float64
	for i := range xs {
		sx, sy, sxx, sxy = sx+xs[i], sy+ys[i], sxx+xs[i]*xs[i], sxy+xs[i]*ys[i]
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

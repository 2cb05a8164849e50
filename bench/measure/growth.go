package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// largestStep is how much more a cost may grow from one size to the next than the size itself. Where a cache is outgrown it is some per cent, where an
// algorithm changes its order nearly as much as the sizes differ.
const largestStep = 1.25

// judgeGrowth fits cost = a · factorᵉ to the medians: e is 1 where the cost grows with the input, less where a part of it is fixed, and may not
// be more. Then it finds the largest step between two neighbours.
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
	var xs, ys []float64
	for _, m := range sizes {
		cost := Median(m.Values[g.Quantity])
		if cost <= 0 {
			return fmt.Errorf("%s: %s of %q is 0, and what grows from that cannot be told", g.What, g.Quantity, m.Name)
		}
		xs, ys = append(xs, math.Log(m.Factor)), append(ys, math.Log(cost))
	}
	noise := r.noise(g.Quantity, Ratio)
	// An exponent is off by what an end of its line is off, over the line's length.
	off := math.Log1p(noise) / (xs[len(xs)-1] - xs[0])
	fitted := math.Round(1000*slope(xs, ys)) / 1000 // what is beyond that is the arithmetic's
	exponent := &Judgement{
		Number: g.Number, What: g.What + ": exponent", Quantity: g.Quantity, Value: fitted, Low: fitted - off, High: fitted + off, Unit: exponentUnit, Noise: off, AtMost: 1,
	}
	exponent.decide(Difference)

	step := &Judgement{Number: g.Number, Quantity: g.Quantity, Noise: noise, AtMost: largestStep}
	for i := 1; i < len(sizes); i++ {
		if grown := math.Exp(ys[i] - ys[i-1] - (xs[i] - xs[i-1])); grown > step.Value {
			step.Value, step.What = grown, fmt.Sprintf("%s: largest step, %s to %s", g.What, sizes[i-1].Name, sizes[i].Name)
		}
	}
	step.Low, step.High = step.Value/(1+noise), step.Value*(1+noise)
	step.decide(Ratio)
	r.Judged = append(r.Judged, exponent, step)
	return nil
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

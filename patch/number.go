package patch

import (
	"bytes"
	"math/big"
	"strconv"
)

// maxPlain is the number of digits up to which a number is spelt without an exponent.
const maxPlain = 400

func isDigit(c byte) bool { return c-'0' <= 9 }

func digitsEnd(text []byte, i int) int {
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	return i
}

// numberParts are the positions at which the parts of a number end. A missing part is empty.
type numberParts struct {
	whole    int // end of the integer part, sign included
	fraction int // end of the fraction, point included
	end      int // end of the exponent, and of the number
}

// splitNumber finds the parts of the number that begins at pos, or the problem and its place.
func splitNumber(text []byte, pos int) (p numberParts, at int, problem string) {
	i := pos
	if text[i] == '-' {
		i++
	}
	p.whole = digitsEnd(text, i)
	if p.whole == i {
		return p, i, "expected a digit"
	}
	if text[i] == '0' && p.whole > i+1 {
		return p, i + 1, "digit after a leading zero"
	}
	p.fraction = p.whole
	if i = p.whole; i < len(text) && text[i] == '.' {
		if p.fraction = digitsEnd(text, i+1); p.fraction == i+1 {
			return p, i + 1, "expected a digit after the point"
		}
	}
	p.end = p.fraction
	if i = p.fraction; i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if p.end = digitsEnd(text, i); p.end == i {
			return p, i, "expected a digit in the exponent"
		}
	}
	return p, 0, ""
}

// scanNumber reads the number at pos, which is a digit or a minus sign. It returns the position after it and whether
// its spelling is canonical; or the position and description of a problem.
func scanNumber(text []byte, pos int) (end int, f flags, problem string) {
	p, at, problem := splitNumber(text, pos)
	if problem != "" {
		return at, 0, problem
	}
	switch length := p.end - pos; {
	case p.end > p.fraction || length > maxPlain:
		// Such numbers are so rare that spelling them out for the comparison costs nothing.
		if number := text[pos:p.end]; !bytes.Equal(appendNumber(nil, number), number) {
			f = dirty
		}
	case p.fraction > p.whole && text[p.end-1] == '0', length == 2 && text[pos] == '-' && text[pos+1] == '0':
		f = dirty
	}
	return p.end, f, ""
}

// A decimal is a number as digits × 10^exponent, without a leading or trailing zero among the digits. Zero has no
// digits. All spellings of a value have the same decimal.
type decimal struct {
	negative bool
	digits   []byte
	exponent int64
	beyond   *big.Int // the exponent, if it does not fit
}

// appendNumber appends the canonical spelling of a valid number.
func appendNumber(dst, number []byte) []byte {
	d := parseDecimal(number)
	if len(d.digits) == 0 {
		return append(dst, '0')
	}
	if d.negative {
		dst = append(dst, '-')
	}
	if d.plain() {
		return d.appendPlain(dst)
	}
	dst = append(append(dst, d.digits...), 'E')
	if d.beyond != nil {
		return d.beyond.Append(dst, 10)
	}
	return strconv.AppendInt(dst, d.exponent, 10)
}

func parseDecimal(number []byte) decimal {
	p, _, _ := splitNumber(number, 0)
	d := decimal{negative: number[0] == '-'}
	whole := bytes.TrimPrefix(number[:p.whole], []byte("-"))
	fraction := bytes.TrimPrefix(number[p.whole:p.fraction], []byte("."))
	d.digits = bytes.TrimLeft(append(append(make([]byte, 0, len(number)), whole...), fraction...), "0")
	shift := int64(-len(fraction))
	trimmed := bytes.TrimRight(d.digits, "0")
	shift += int64(len(d.digits) - len(trimmed))
	d.digits = trimmed
	if p.end > p.fraction {
		d.setExponent(number[p.fraction+1:p.end], shift)
	} else {
		d.exponent = shift
	}
	return d
}

// setExponent sets the exponent to the spelt exponent plus shift. It is exact for any number of digits.
func (d *decimal) setExponent(text []byte, shift int64) {
	if spelt, err := strconv.ParseInt(string(text), 10, 62); err == nil {
		d.exponent = spelt + shift
		return
	}
	d.beyond, _ = new(big.Int).SetString(string(text), 10)
	d.beyond.Add(d.beyond, big.NewInt(shift))
}

// plain reports whether the number is spelt without an exponent: if it needs no additional zeros, or not more than
// maxPlain digits in all.
func (d *decimal) plain() bool {
	length := int64(len(d.digits))
	switch {
	case d.beyond != nil:
		return false
	case d.exponent >= 0:
		return d.exponent == 0 || length+d.exponent <= maxPlain
	default:
		return length > -d.exponent || 1-d.exponent <= maxPlain
	}
}

func (d *decimal) appendPlain(dst []byte) []byte {
	point := len(d.digits) + int(d.exponent)
	switch {
	case d.exponent >= 0:
		return appendZeros(append(dst, d.digits...), int(d.exponent))
	case point > 0:
		dst = append(append(dst, d.digits[:point]...), '.')
		return append(dst, d.digits[point:]...)
	default:
		return append(appendZeros(append(dst, '0', '.'), -point), d.digits...)
	}
}

func appendZeros(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, '0')
	}
	return dst
}

// Command vectors records what apimachinery's resource.Quantity answers, for tests/vectors.rs.
//
// Run in this folder: go run . > vectors.txt
//
// The fields of a line are separated by tabs. The first one names the kind of line:
//
//	error  input message
//	parse  input text format canonical negated value milli rounded exact
//	pair   left right sum format difference format comparison
//	times  input factor text
//	scaled value scale text
//
// "text" is String() of what was read, "canonical" the same without the kept text, "rounded" and "exact" the
// outcome of RoundUp(0). A leading "!" marks an answer that is numerically wrong: a text that has lost its suffix
// (1000E prints as 1), or a value that has overflowed or was rounded towards zero. Instead of a wrong value the
// line has the right one, limited to int64.
package main

import (
	"bufio"
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"os"
	"strings"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

var (
	suffixes = []string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
		"e0", "e3", "E3", "e+3", "e-3", "e1", "E2", "e-9", "e-10", "E-12", "e18", "E20", "e40", "e-40"}
	numbers = []string{"0", "00", "007", "1", "5", "8", "16", "100", "1000", "1024", "1023", "1025", "1500", "12000",
		"1.5", "1.500", "1.0", "0.5", ".5", "5.", ".", "", "0.0000000001", "0.1", "0.001", "1.001", "3.0009",
		"999999999999999999", "1000000000000000001", "9223372036854775807", "9223372036854775808",
		"123456789012345678901234567890", "0.123456789123456789", "18.000000000000000000001", "12345678.9"}
	signs    = []string{"", "-", "+"}
	examples = []string{"1..5", "1.2.3", " 1", "1 ", "1e", "1E", "1e+", "1e-", "1mm", "1kk", "1i", "1KiB", "1ki", "1K",
		"x", "Non-Numeric", "--1", "+-1", "1-", "1+3", "1_000", "0x10", "1e3.5", "1e1e1", "1E5i", "Infinity", "NaN",
		"١", "1€", "1e9223372036854775807999", "1Mi5", "1e 3", "1\u00a0", "1,5", "1e0003", "1e-0", "E", "Ki", "e5",
		"m", "Pi", ".Pi", ".Ki", ".e-11", "e-10", "9Ei", "8Ei", "7Ei", "-9Ei", "0.000000000001Ki", "100.035Ki",
		"0.025Ti", "99Ti", "100Ti", "99999Gi", "100000Gi", "12345678901Ki", "123456789012Ki", "1000E", "1001E",
		"1000000E", "1e21", "1e300", "1E-300", "100000000000000000000000000000000000000000"}
	random = rand.New(rand.NewSource(20260916))
	out    = bufio.NewWriter(os.Stdout)
)

func main() {
	defer out.Flush()
	inputs := append([]string{}, examples...)
	for _, number := range numbers {
		for _, suffix := range suffixes {
			for _, sign := range signs {
				inputs = append(inputs, sign+number+suffix)
			}
		}
	}
	for range 1200 {
		inputs = append(inputs, wellFormed())
	}
	for range 600 {
		inputs = append(inputs, garbage())
	}
	var good []string
	for _, input := range inputs {
		if input == "" {
			continue
		}
		if parse(input) {
			good = append(good, input)
		}
	}
	pick := func() string { return good[random.Intn(len(good))] }
	for range 2500 {
		pair(pick(), pick())
	}
	for range 400 {
		times(pick(), random.Int63n(2000)-1000)
		times(pick(), random.Int63()-random.Int63())
	}
	for scale := resource.Nano; scale <= resource.Exa; scale += 3 {
		for _, value := range []int64{0, 1, -1, 10, 1000, 1500, -123456, math.MaxInt64, math.MinInt64 + 1} {
			q := resource.NewScaledQuantity(value, scale)
			fmt.Fprintf(out, "scaled\t%d\t%d\t%s\n", value, scale, text(*q))
		}
	}
}

func wellFormed() string {
	digits := func(most int) string {
		var b strings.Builder
		for range random.Intn(most + 1) {
			b.WriteByte("00123456789"[random.Intn(11)])
		}
		return b.String()
	}
	number := digits(12)
	if random.Intn(8) == 0 {
		number += digits(30)
	}
	if random.Intn(2) == 0 {
		number += "." + digits(12)
	}
	suffix := suffixes[random.Intn(len(suffixes))]
	if random.Intn(6) == 0 {
		suffix = fmt.Sprintf("e%d", random.Intn(80)-40)
	}
	return signs[random.Intn(len(signs))] + number + suffix
}

func garbage() string {
	const letters = "0123456789..+-eEinumkKMGTP xZ"
	b := make([]byte, 1+random.Intn(7))
	for at := range b {
		b[at] = letters[random.Intn(len(letters))]
	}
	return string(b)
}

func must(input string) resource.Quantity {
	return resource.MustParse(input)
}

func parse(input string) bool {
	q, err := resource.ParseQuantity(input)
	if err != nil {
		fmt.Fprintf(out, "error\t%s\t%s\n", input, err)
		return false
	}
	canonical := must(input)
	canonical.Add(resource.Quantity{Format: q.Format})
	negated := must(input)
	negated.Neg()
	rounded := must(input)
	exact := rounded.RoundUp(0)
	fmt.Fprintf(out, "parse\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%t\n", input, text(q), q.Format, text(canonical),
		text(negated), value(must(input), 0), value(must(input), resource.Milli), text(rounded), exact)
	return true
}

func pair(left, right string) {
	sum, difference, l := must(left), must(left), must(left)
	sum.Add(must(right))
	difference.Sub(must(right))
	fmt.Fprintf(out, "pair\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", left, right, text(sum), sum.Format, text(difference),
		difference.Format, l.Cmp(must(right)))
}

func times(input string, factor int64) {
	q := must(input)
	q.Mul(factor)
	fmt.Fprintf(out, "times\t%s\t%d\t%s\n", input, factor, text(q))
}

// text returns String(), marked if the suffix is lost.
func text(q resource.Quantity) string {
	mark := ""
	if !q.IsZero() {
		c := q.DeepCopy()
		_, exponent := c.AsCanonicalBytes(nil)
		if q.Format == resource.DecimalSI && exponent > 18 {
			mark = "!"
		}
		if rounded, exact := c.AsScale(0); q.Format == resource.BinarySI && exact && c.CmpInt64(1024) >= 0 {
			if _, exponent := rounded.AsCanonicalBase1024Bytes(nil); exponent > 6 {
				mark = "!"
			}
		}
	}
	return mark + q.String()
}

// value returns the right ScaledValue, marked if apimachinery's differs.
func value(q resource.Quantity, scale resource.Scale) string {
	got := q.ScaledValue(scale)
	dec := new(inf.Dec).Set(q.AsDec())
	dec.SetScale(dec.Scale() + inf.Scale(scale))
	dec.Round(dec, 0, inf.RoundUp)
	right := dec.UnscaledBig()
	if dec.Scale() != 0 {
		panic("not rounded to a whole number")
	}
	if !right.IsInt64() {
		limit := int64(math.MaxInt64)
		if right.Sign() < 0 {
			limit = math.MinInt64
		}
		right = big.NewInt(limit)
	}
	if right.Int64() == got {
		return fmt.Sprint(got)
	}
	return fmt.Sprintf("!%d", right)
}

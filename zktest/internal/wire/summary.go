package wire

import (
	"strconv"
	"strings"
)

// Summary is the count, sum and extremes of a series of numbers.
type Summary struct{ N, Sum, Low, High int64 }

// Add counts a number.
func (s *Summary) Add(v int64) {
	if s.N == 0 || v < s.Low {
		s.Low = v
	}
	if s.N == 0 || v > s.High {
		s.High = v
	}
	s.N++
	s.Sum += v
}

// Average is rounded to four decimals and written as Java does it: 0.0, 1.875, 5.0E-4.
func (s *Summary) Average() string {
	if s.N == 0 {
		return "0.0"
	}
	v := (s.Sum*20_000 + s.N) / (2 * s.N) // in ten thousandths
	if 0 < v && v < 10 {
		return strconv.FormatInt(v, 10) + ".0E-4"
	}
	digits := strconv.FormatInt(v%10_000+10_000, 10)[1:]
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		digits = "0"
	}
	return strconv.FormatInt(v/10_000, 10) + "." + digits
}

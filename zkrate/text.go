package zkrate

import (
	"fmt"
	"strconv"

	"golang.org/x/time/rate"
)

// limitText is a limit as people read it.
func limitText(l rate.Limit, burst int) string {
	if l == rate.Inf {
		return "none (rate.Inf)"
	}
	return fmt.Sprintf("%s events a second with a burst of %d", strconv.FormatFloat(float64(l), 'g', -1, 64), burst)
}

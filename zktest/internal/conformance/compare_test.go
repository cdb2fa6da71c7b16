package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// width is that of one column of a side-by-side listing.
const width = 92

// difference returns "" for equal transcripts and a listing of both, side by side, for others. Lines
// that differ are marked.
func difference(real, ours []string) string {
	if slices.Equal(real, ours) {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n    %-*s   %s\n", width, "REAL", "OURS")
	for _, p := range align(real, ours) {
		mark := "  "
		if p[0] != p[1] {
			mark = "!!"
		}
		left, right := fold(p[0]), fold(p[1])
		for i := range max(len(left), len(right)) {
			fmt.Fprintf(&b, " %s %-*s | %s\n", mark, width, at(left, i), at(right, i))
		}
	}
	return b.String()
}

func at(s []string, i int) string {
	if i < len(s) {
		return s[i]
	}
	return ""
}

// fold breaks a long line at spaces.
func fold(line string) []string {
	var out []string
	for len(line) > width {
		cut := strings.LastIndexByte(line[:width], ' ')
		if cut <= 12 {
			cut = width
		}
		out = append(out, line[:cut])
		line = "       " + strings.TrimPrefix(line[cut:], " ")
	}
	return append(out, line)
}

// align pairs the lines of two transcripts by their longest common subsequence. Unpaired neighbours share
// a row.
func align(a, b []string) [][2]string {
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out [][2]string
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, [2]string{a[i], b[j]})
			i, j = i+1, j+1
		case i < len(a) && j < len(b) && common[i+1][j+1] == common[i][j]:
			out = append(out, [2]string{a[i], b[j]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out = append(out, [2]string{a[i], ""})
			i++
		default:
			out = append(out, [2]string{"", b[j]})
			j++
		}
	}
	return out
}

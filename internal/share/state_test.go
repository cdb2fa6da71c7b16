package share

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() { Strict = true }

func TestThePictureOfTheStatesIsTheTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)
	_, picture, found := strings.Cut(string(text), "stateDiagram")
	require.True(t, found)
	picture, _, _ = strings.Cut(picture, "```")
	var drawn, want []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-zA-Z]+) --> ([a-zA-Z]+)$`).FindAllStringSubmatch(picture, -1) {
		drawn = append(drawn, m[1]+" "+m[2])
	}
	for from, to := range changes {
		for to, why := range to {
			if why != "" {
				want = append(want, fmt.Sprint(state(from), " ", state(to)))
			}
		}
	}
	require.ElementsMatch(t, want, drawn)
}

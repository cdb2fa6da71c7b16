package node

import (
	"slices"
	"strings"
)

// UnderNone is the Under of an owner that held nothing.
const UnderNone = "none"

// maxUnder bounds how many tokens an Under has.
const maxUnder = 16

// FormatUnder is the text of an Under: the tokens of the holds that an owner has, the newest of them if they are many.
func FormatUnder(tokens []Token) string {
	if len(tokens) == 0 {
		return UnderNone
	}
	tokens = slices.Clone(tokens)
	slices.SortFunc(tokens, Token.Compare)
	tokens = slices.Compact(tokens)
	texts := make([]string, 0, maxUnder)
	for _, t := range tokens[max(len(tokens)-maxUnder, 0):] {
		texts = append(texts, t.String())
	}
	return strings.Join(texts, ",")
}

// ParseUnder returns the tokens of an Under. It reports false if text is not an Under of ours: then it is not known what the
// owner held.
func ParseUnder(text string) (tokens []Token, known bool) {
	if text == UnderNone {
		return nil, true
	}
	if len(text) > maxUnder*(tokenTextLen+1) {
		return nil, false
	}
	for each := range strings.SplitSeq(text, ",") {
		t, err := ParseToken(each)
		if err != nil {
			return nil, false
		}
		tokens = append(tokens, t)
	}
	return tokens, true
}

package errs

import "strconv"

// quotedLen is how many characters of a text that may be anything are shown in
// an error.
const quotedLen = 80

// Quote quotes s for an error, at most its first quotedLen characters.
func Quote(s string) string {
	count := 0
	for at := range s {
		if count == quotedLen {
			return strconv.Quote(s[:at]) + "..."
		}
		count++
	}
	return strconv.Quote(s)
}

// plainPathLen is up to where ShowPath shows a path as it is.
const plainPathLen = 256

// ShowPath returns the path as people write it if it is fit to be shown in one
// line, and quoted and shortened otherwise.
func ShowPath(path string) string {
	if len(path) > plainPathLen || strconv.Quote(path) != `"`+path+`"` {
		return Quote(path)
	}
	return path
}

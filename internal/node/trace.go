package node

// A traceparent of W3C Trace Context is VERSION-TRACE-PARENT-FLAGS, all in lower-case hexadecimal digits.
const (
	traceparentLen = 55
	traceZero      = "00000000000000000000000000000000"
)

// traceparent is text if it is a traceparent, else "". Anybody may write node data, and a tracer hands a traceparent on.
func traceparent(text string) string {
	if len(text) != traceparentLen {
		return ""
	}
	for i := range len(text) {
		c := text[i]
		dash := i == 2 || i == 35 || i == 52
		if dash != (c == '-') || !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	if text[:2] == "ff" || text[3:35] == traceZero || text[36:52] == traceZero[:16] {
		return ""
	}
	return text
}

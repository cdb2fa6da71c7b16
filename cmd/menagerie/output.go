package main

import (
	"encoding/json"
	"io"
)

func printJSON(w io.Writer, v any) error { return writeJSON(w, v, true) }

func writeJSON(w io.Writer, v any, indent bool) error {
	enc := json.NewEncoder(w)
	if indent {
		enc.SetIndent("", "  ")
	}
	enc.SetEscapeHTML(false)
	return outputError(enc.Encode(v))
}

func outputError(err error) error {
	if err != nil {
		return failure("cannot write the output: %v", err)
	}
	return nil
}

package tree

import (
	"strings"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// validPath applies the real server's rules for node paths: absolute, no empty, "."
// or ".." element, no trailing slash, and no control or private characters.
func validPath(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	if path == "/" {
		return true
	}
	if strings.HasSuffix(path, "/") {
		return false
	}
	for elem := range strings.SplitSeq(path[1:], "/") {
		if elem == "" || elem == "." || elem == ".." {
			return false
		}
	}
	for _, c := range path {
		if badCharacter(c) {
			return false
		}
	}
	return true
}

// badCharacter reports whether a character may not occur in a path. The real server looks at
// UTF-16 units, so everything outside the basic plane is refused, as halves of a pair.
func badCharacter(c rune) bool {
	return c <= 0x1f || c >= 0x7f && c <= 0x9f || c >= 0xd800 && c <= 0xf8ff || c >= 0xfff0
}

// parentForCreate returns the parent of a path to create, which need not be valid yet.
func parentForCreate(path string) (string, wire.Code) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", wire.CodeBadArguments
	}
	return path[:i], wire.CodeOK
}

// parentForDelete is parentForCreate for a path to delete: the server's own nodes stay.
func parentForDelete(path string) (string, wire.Code) {
	if specialPaths[path] {
		return "", wire.CodeBadArguments
	}
	return parentForCreate(path)
}

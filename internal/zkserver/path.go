package zkserver

import (
	"strings"
	"unicode/utf16"
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
	for _, elem := range strings.Split(path[1:], "/") {
		if elem == "" || elem == "." || elem == ".." {
			return false
		}
	}
	for _, u := range utf16.Encode([]rune(path)) {
		if badUnit(u) {
			return false
		}
	}
	return true
}

// badUnit tells whether a UTF-16 unit may not occur in a path. The real server looks at
// units, not characters, so everything outside the basic plane is refused.
func badUnit(u uint16) bool {
	return u <= 0x1f || u >= 0x7f && u <= 0x9f || u >= 0xd800 && u <= 0xf8ff || u >= 0xfff0
}

// parentForCreate returns the parent of a path to create, which need not be valid yet.
func parentForCreate(path string) (string, Code) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", CodeBadArguments
	}
	return path[:i], CodeOK
}

// parentForDelete is parentForCreate for a path to delete: the server's own nodes stay.
func parentForDelete(path string) (string, Code) {
	if specialPaths[path] {
		return "", CodeBadArguments
	}
	return parentForCreate(path)
}

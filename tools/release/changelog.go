package main

import (
	"fmt"
	"regexp"
	"strings"
)

// unreleased is what stands in place of the date of a section that is being prepared.
const unreleased = "unreleased"

var (
	links    = regexp.MustCompile(`(?m)^\[[^]]+\]: `) // at the end of the page
	heading  = regexp.MustCompile(`(?m)^## .*$`)
	released = regexp.MustCompile(`^## \[(.+)\] - (\d{4}-\d{2}-\d{2}|` + unreleased + `)$`)
	breaking = regexp.MustCompile(`(?m)^### (Changed|Removed)$`)
)

// sectionOf returns the part of a changelog that is about a version, with its heading.
func sectionOf(changelog, version string) (string, error) {
	number := strings.TrimPrefix(version, "v")
	all := heading.FindAllStringIndex(changelog, -1)
	for i, at := range all {
		title := changelog[at[0]:at[1]]
		if !strings.HasPrefix(title, "## ["+number+"]") {
			continue
		}
		if !released.MatchString(title) {
			return "", fmt.Errorf("CHANGELOG.md: the heading %q does not end with a date: write \"## [%s] - YYYY-MM-DD\", or \"- %s\" for the day of the release", title, number, unreleased)
		}
		end := len(changelog)
		if i+1 < len(all) {
			end = all[i+1][0]
		}
		section := strings.TrimSpace(links.Split(changelog[at[0]:end], 2)[0])
		if section == title {
			return "", fmt.Errorf("CHANGELOG.md: the section %q is empty: say what users can do now", title)
		}
		return section, nil
	}
	return "", fmt.Errorf("CHANGELOG.md has no section for %s: rename \"## [Unreleased]\" to \"## [%s] - %s\", put a new \"## [Unreleased]\" above it, and commit", version, number, unreleased)
}

// dated sets the date of a section that has none yet.
func dated(changelog, version, date string) string {
	title := "## [" + strings.TrimPrefix(version, "v") + "] - "
	return strings.Replace(changelog, title+unreleased+"\n", title+date+"\n", 1)
}

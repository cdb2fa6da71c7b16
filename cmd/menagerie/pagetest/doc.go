// Package pagetest holds the tests of the page of "menagerie ui" in Debian's Chromium. The first shows a night with a
// deadlock, a dead holder and an outage, with the command as users run it; the others show views that are made for them.
package pagetest

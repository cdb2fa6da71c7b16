// Package livetest has the tests of alerts and dashboard with Debian's Prometheus: promtool checks the metrics and the rules, and
// plays the rules in virtual time; and a Prometheus that scrapes a process with locks shows that each alert begins and ends.
package livetest

// Package zkgroup_test has the tests of groups.
package zkgroup_test

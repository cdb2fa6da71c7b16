// Package oldservers has the tests of all that watches on servers that do not know what it would like to ask, and close the connection when it asks.
package oldservers

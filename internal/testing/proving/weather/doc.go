// Package weather has three processes that use one server meet with faults, for the tests of recipes against plain models.
package weather

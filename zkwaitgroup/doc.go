// Package zkwaitgroup has a [WaitGroup]: sync.WaitGroup for members of many processes, which may die.
package zkwaitgroup

package faults_test

func electionPlays() []play { return nil }
func oncePlays() []play     { return nil }
func gatePlays() []play     { return nil }
func multiPlays() []play    { return nil }

// The conformance suite of providers, with local boxes.
import { testProviderConformance } from './conformance.ts'

testProviderConformance('local')

// The conformance suite of providers, with Incus.
import { testProviderConformance } from './conformance.ts'

testProviderConformance('incus')

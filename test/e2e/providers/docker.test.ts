// The conformance suite of providers, with Docker.
import { testProviderConformance } from './conformance.ts'

testProviderConformance('docker')

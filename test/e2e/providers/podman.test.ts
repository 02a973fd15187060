// The conformance suite of providers, with Podman as root.
import { testProviderConformance } from './conformance.ts'

testProviderConformance('podman')

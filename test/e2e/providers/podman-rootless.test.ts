// The conformance suite of providers, with Podman as an ordinary user.
import { testProviderConformance } from './conformance.ts'

testProviderConformance('podman-rootless')

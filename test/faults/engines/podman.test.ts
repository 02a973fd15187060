// Killed coordinators and engines, with boxes in Podman as root.
import { testKilledEngine } from './killed-engine.ts'

testKilledEngine('podman')

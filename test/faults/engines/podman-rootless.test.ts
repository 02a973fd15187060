// Killed coordinators and engines, with boxes in Podman as an ordinary user.
import { testKilledEngine } from './killed-engine.ts'

testKilledEngine('podman-rootless')

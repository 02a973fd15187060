// Killed coordinators and engines, with boxes in Incus.
import { testKilledEngine } from './killed-engine.ts'

testKilledEngine('incus')

// Killed coordinators and engines, with boxes in Docker.
import { testKilledEngine } from './killed-engine.ts'

testKilledEngine('docker')

// Boxes of Incus.
import { testEngineStages } from './engine-stages.ts'

testEngineStages('incus', import.meta.filename)

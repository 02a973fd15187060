// Boxes of Docker.
import { testEngineStages } from './engine-stages.ts'

testEngineStages('docker', import.meta.filename)

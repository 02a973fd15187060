// Boxes of Podman.
import { testEngineStages } from './engine-stages.ts'

testEngineStages('podman', import.meta.filename)

// Boxes of Podman without root.
import { testEngineStages } from './engine-stages.ts'

testEngineStages('podman-rootless', import.meta.filename)

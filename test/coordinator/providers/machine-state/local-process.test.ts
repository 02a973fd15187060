// Boxes at level process of a coordinator that runs as root.
import { testLocalStages } from './local-stages.ts'

await testLocalStages('process', ['host'], import.meta.filename)

// Boxes at level namespaces of a coordinator that runs as root.
import { testLocalStages } from './local-stages.ts'

await testLocalStages('namespaces', ['own', 'host'], import.meta.filename)

// Boxes at level bubblewrap of a coordinator that runs as root.
import { testLocalStages } from './local-stages.ts'

await testLocalStages('bubblewrap', ['own', 'host'], import.meta.filename)

// The project's directory and its start command.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const PROJECT_DIR = fileURLToPath(new URL('../..', import.meta.url))

const { scripts }: { scripts: { start: string } } = JSON.parse(
  readFileSync(join(PROJECT_DIR, 'package.json'), 'utf8'),
)

/** The arguments of Node in `npm start`. Spawning Node with them gives the coordinator's pid instead of npm's. */
export const START_ARGS: readonly string[] = scripts.start.split(' ').slice(1)

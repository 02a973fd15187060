// Where this project is, and how it is started.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const PROJECT = fileURLToPath(new URL('../..', import.meta.url))

const { scripts }: { scripts: { start: string } } = JSON.parse(
  readFileSync(join(PROJECT, 'package.json'), 'utf8'),
)

/** Arguments of Node, from `npm start`, for a coordinator whose pid is to be known: npm would stand in between. */
export const START_ARGS: readonly string[] = scripts.start.split(' ').slice(1)

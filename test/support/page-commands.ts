// The commands of a page of the documentation, in its order.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_DIR } from './project.ts'

/** The lines of all blocks that are marked `sh`. @param page relative to the project directory */
export function readPageCommands(page: string): string[] {
  const text = readFileSync(join(PROJECT_DIR, page), 'utf8')
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
  return blocks.flatMap((block) => block.split('\n')).filter((line) => line !== '')
}

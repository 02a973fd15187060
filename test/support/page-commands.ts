// The commands of a page of the documentation, in its order.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_DIR } from './project.ts'

/**
 * The lines of all blocks that are marked `sh`.
 * @param page relative to the project directory
 * @param section the heading of the only section that is read
 */
export function readPageCommands(page: string, section?: string): string[] {
  const blocks = readBlocks(page, 'sh', section)
  return blocks.flatMap((block) => block.split('\n')).filter((line) => line !== '')
}

/** The blocks of a language. */
export function readBlocks(page: string, language: string, section?: string): string[] {
  const text = readFileSync(join(PROJECT_DIR, page), 'utf8')
  const read =
    section === undefined ? text : text.split(/^## /m).find((part) => part.startsWith(`${section}\n`))
  if (read === undefined) throw new Error(`${page} has no section ${section}`)
  return [...read.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, block = '']) => block,
  )
}

// Reads what the timeline shows. Each source has its own error: one that fails does not hide the others.
import type { Command, CommandList } from '../../../shared/api/commands.ts'
import type { CommandQuery } from '../../api/client.ts'
import type { Range } from './range.ts'

export type CommandPages = {
  /** Newest first. */
  commands: Command[]
  /** Continues with earlier commands of the range; null: all are loaded. */
  next: string | null
}

export type LoadCommandPage = (query: CommandQuery) => Promise<CommandList>

const PAGE_SIZE = 200
/** Requests until the user asks for more. */
const PAGES = 3

/**
 * The newest commands of a range, at most 600, and all that are still running. A command that started before the range and
 * finished in it is found when it is on the same page as the first one of the range.
 * @param previous a result with `next`, which is continued
 */
export async function loadCommands(
  loadPage: LoadCommandPage,
  range: Range,
  previous?: CommandPages,
): Promise<CommandPages> {
  const to = new Date(range.to).toISOString()
  const byId = new Map((previous?.commands ?? []).map((command) => [command.id, command]))
  const add = (commands: readonly Command[]) => {
    for (const command of commands) byId.set(command.id, command)
  }
  let next = previous?.next ?? null
  for (let page = 0; page < PAGES && (page === 0 || next !== null); page += 1) {
    const list = await loadPage({ limit: PAGE_SIZE, to, ...(next !== null && { before: next }) })
    add(list.commands)
    const oldest = list.commands.at(-1)
    next = oldest && Date.parse(oldest.startedAt) >= range.from ? list.nextBefore : null
  }
  if (previous === undefined) add((await loadPage({ limit: PAGE_SIZE, to, status: 'running' })).commands)
  return { commands: [...byId.values()], next }
}

// Lists the candidates that complete a command line.
import type { Command } from 'commander'
import { parseLine } from './parse-line.ts'
import type { Candidate, Values } from './values.ts'

/**
 * Only candidates that start with the incomplete word.
 * @param line the words after `box` up to the cursor; the one at the cursor is incomplete and may be empty
 */
export async function complete(program: Command, line: readonly string[]): Promise<Values> {
  const last = line.at(-1) ?? ''
  const { candidates, includesFiles } = await listCandidates(program, line)
  return { candidates: candidates.filter(({ value }) => value.startsWith(last)), includesFiles }
}

async function listCandidates(program: Command, line: readonly string[]): Promise<Values> {
  const target = parseLine(program, line)
  switch (target.kind) {
    case 'command':
      return { candidates: listCommands(target.of, line.at(-1) !== ''), includesFiles: false }
    case 'option':
      return { candidates: listOptions(target.command), includesFiles: false }
    case 'value': {
      // Imported here: commands and options need no coordinator.
      const { listValues } = await import('./values.ts')
      const values = await listValues(target.command, target.of, target.words)
      const candidates = values.candidates.map((candidate) => ({
        ...candidate,
        value: target.prefix + candidate.value,
      }))
      // Such as `rm` of box snapshots.
      const isFirstArgument = target.words.length === 0 && !('long' in target.of)
      const subcommands = isFirstArgument ? listCommands(target.command, false) : []
      return { ...values, candidates: [...subcommands, ...candidates] }
    }
    case 'none':
      return { candidates: [], includesFiles: false }
  }
}

/** With `includesAliases`, an alias such as `list` is a candidate too. */
function listCommands(parent: Command, includesAliases: boolean): Candidate[] {
  return parent
    .createHelp()
    .visibleCommands(parent)
    .flatMap((command) =>
      [command.name(), ...(includesAliases ? command.aliases() : [])].map((value) => ({
        value,
        description: command.summary() || command.description(),
      })),
    )
}

function listOptions(command: Command): Candidate[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .map(({ long, short, description }) => ({ value: long ?? short ?? '', description }))
}

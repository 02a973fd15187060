// The list of the commands of a box: merges pages, filters, and formats the fields.
import type { Command, CommandList } from '../../shared/api/commands.ts'
import { formatUser, type PersonViewer } from './people.ts'

/** Replaces the newest commands by a page of them. Older ones that were loaded before stay. */
export function mergeNewest(loaded: readonly Command[], { commands, nextBefore }: CommandList): Command[] {
  const last = commands.at(-1)
  if (last === undefined || nextBefore === null) return commands
  const ids = new Set(commands.map(({ id }) => id))
  const end = loaded.findLastIndex(({ id }) => ids.has(id))
  return [...commands, ...loaded.slice(end + 1).filter(({ startedAt }) => startedAt <= last.startedAt)]
}

export const appendOlder = (loaded: readonly Command[], older: readonly Command[]): Command[] => {
  const ids = new Set(loaded.map(({ id }) => id))
  return [...loaded, ...older.filter(({ id }) => !ids.has(id))]
}

/** @param filter words that the text of the command must contain */
export function filterCommands(commands: readonly Command[], filter: string): readonly Command[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return commands
  return commands.filter(({ command }) => {
    const text = (command ?? '').toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

/** `exited with 3`, `killed by TERM`. */
export function formatResult({ status, exitCode, signal }: Command): string {
  if (status === 'exited' && exitCode !== null)
    return exitCode === 0 ? 'succeeded' : `exited with ${exitCode}`
  const text = status.replaceAll('_', ' ')
  return signal === null ? text : `${text} by ${signal}`
}

/** The class of formatResult(). */
export const getResultClass = ({ status, exitCode }: Command): string =>
  status === 'running' ? 'result running' : exitCode === 0 ? 'result exited' : 'result'

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
] as const

/** @param now the time of the coordinator, for a command that is running */
export function formatDuration({ startedAt, finishedAt, status }: Command, now: number): string {
  if (finishedAt === null && status !== 'running') return 'unknown'
  const ms = Math.max(0, (finishedAt === null ? now : Date.parse(finishedAt)) - Date.parse(startedAt))
  // The time of the coordinator advances every few seconds.
  if (finishedAt === null && ms < 60_000) return `${Math.floor(ms / 1000)} s`
  if (ms < 1000) return `${ms} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  const index = UNITS.findIndex(([size]) => ms >= size)
  return UNITS.slice(index, index + 2)
    .map(([size, unit], position) => {
      const previous = UNITS[index + position - 1]?.[0]
      return `${Math.floor((position === 0 || previous === undefined ? ms : ms % previous) / size)} ${unit}`
    })
    .join(' ')
}

/** Who started the command, and with what. */
export function formatStarter({ actor }: Command, viewer: PersonViewer): string {
  if (actor.userId === null) return 'the system'
  const means = { user: '', cli: ', with box', ticket: '', mobile: ', with a phone', system: '' }
  return formatUser(actor.userId, viewer) + means[actor.kind]
}

/** The texts of the commands, newest first and each once, for the arrow keys of the field that starts one. */
export const listTexts = (commands: readonly Command[]): string[] => [
  ...new Set(commands.filter(canRunAgain).map(({ command }) => command ?? '')),
]

/** Whether the text of the command is known completely, so that it can be started again. */
export const canRunAgain = ({ command, commandTruncated }: Command): boolean =>
  command !== null && !commandTruncated

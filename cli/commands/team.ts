// box team: lists what the boxes and the members of the workspace do now, and what they spend.

import type { Command } from 'commander'
import type { TeamBox, TeamMember, TeamStatus } from '../../shared/api/team.ts'
import { formatCount } from '../../shared/format-count.ts'
import { formatDollars } from '../../shared/format-dollars.ts'
import type { RunAction } from '../connection/session.ts'
import { addListOptions, getFormat, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { TEAM_BOXES, TEAM_MEMBERS } from '../team/team-lists.ts'

type TeamOptions = ListOptions & { members?: boolean }

export function addTeamCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('team')
      .summary('show what boxes and members do, and what they spend')
      .description(
        'Lists the boxes of the workspace with their owners and states, the open connections of `box ssh`, `box attach` and ' +
          '`box exec`, the last command or prompt, and what they have cost today and in this month, in UTC. A contractor sees ' +
          'their own boxes.',
      )
      .option('--members', 'list the members instead of the boxes'),
    'the names or email addresses',
    { ...TEAM_BOXES.filters, ...TEAM_MEMBERS.filters },
  )
    .addHelpText(
      'after',
      `
Examples:
  box team
  box team --members
  box team --filter state=running --watch
  box team --json | jq .totals`,
    )
    .action((options: TeamOptions) =>
      runAction(({ client, signal }) => {
        const { members, filter = new Map<string, string[]>() } = options
        const { filters } = members ? TEAM_MEMBERS : TEAM_BOXES
        for (const key of filter.keys())
          if (!Object.hasOwn(filters, key))
            throw new CliError(
              EXIT.usage,
              `--filter ${key} needs ${members ? 'a list without --members' : '--members'}. Valid keys: ${Object.keys(filters).join(', ')}.`,
            )
        const hasNote = ['table', 'wide'].includes(getFormat(options))
        const load = async () => {
          const status = await client.request<TeamStatus>('GET', '/team/status')
          return { status, note: hasNote ? describeTotals(status) : null }
        }
        const loadBoxes = async () => {
          const { status, note } = await load()
          return { rows: status.boxes, note, toJson: (boxes: readonly TeamBox[]) => ({ ...status, boxes }) }
        }
        const loadMembers = async () => {
          const { status, note } = await load()
          return {
            rows: status.members,
            note,
            toJson: (rows: readonly TeamMember[]) => ({ ...status, members: rows }),
          }
        }
        return members
          ? printList(TEAM_MEMBERS, loadMembers, options, signal)
          : printList(TEAM_BOXES, loadBoxes, options, signal)
      }),
    )
}

function describeTotals({ totals, boxes }: TeamStatus): string {
  const { running, sessions, spendTodayMicros, spendCycleMicros } = totals
  const spend = `${formatDollars(spendTodayMicros)} today, ${formatDollars(spendCycleMicros)} this month`
  return `${running} of ${formatCount(boxes.length, 'box', 'boxes')} running, ${formatCount(sessions, 'session')}, ${spend}.`
}

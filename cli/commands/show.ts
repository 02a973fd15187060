// box show: prints the details of one box.
import type { Command } from 'commander'
import type { BoxDetail, Isolation } from '../../shared/api/boxes.ts'
import { getStateColor } from '../colors.ts'
import { createJsonOption, type JsonOption } from '../options.ts'
import { type Cell, formatAge, formatDuration, formatTable, print, printJson } from '../output.ts'
import type { RunAction } from '../session.ts'

export function addShowCommand(program: Command, runAction: RunAction): void {
  program
    .command('show')
    .summary('show the details of a box')
    .description(
      'Shows the state of a box, its CPU, memory and disk usage, the state change in progress, and the last state changes.',
    )
    .argument('<name>', "the box's name or id")
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box show fig
  box show fig --json | jq .vitals`,
    )
    .action((name: string, options: JsonOption) =>
      runAction(async ({ client }) => {
        const detail = await client.getBoxDetail((await client.findBox(name)).id)
        if (options.json) printJson(detail)
        else print(formatDetail(detail, Date.now()))
        return undefined
      }),
    )
}

/** The coordinator stores these settings but does not enforce them. */
const NOT_ENFORCED = '(stored, not enforced yet)'

function formatDetail(detail: BoxDetail, now: number): string {
  const { box, state, job, vitals, events } = detail
  const rows: [string, Cell][] = [
    ['name', box.hostname],
    ['id', box.id],
    [
      'state',
      {
        text: `${state.observed} for ${formatAge(state.since, now)}${formatDesiredState(detail)}`,
        color: getStateColor(state.observed),
      },
    ],
    ['agent', formatAgent(detail)],
    ['isolation', formatIsolation(box.isolation)],
    ['tier', box.tier],
    [
      'region',
      `${box.region}${box.desiredRegion ? `, moving to ${box.desiredRegion}` : ''} (has no effect yet)`,
    ],
    ['created', `${box.createdAt} (${formatAge(box.createdAt, now)} ago)`],
  ]
  if (box.pauseAt) rows.push(['suspend at', `${box.pauseAt} ${NOT_ENFORCED}`])
  if (box.autoPauseMin !== null)
    rows.push(['suspend when', `idle for ${box.autoPauseMin} minutes ${NOT_ENFORCED}`])
  if (box.restricted) rows.push(['restricted', `yes ${NOT_ENFORCED}`])
  // Only names: the values are often secrets. --json also prints the values.
  if (detail.envVars.length > 0) rows.push(['variables', detail.envVars.map(({ name }) => name).join(', ')])
  if (vitals)
    rows.push(
      [
        'usage',
        `CPU ${Math.round(vitals.cpu_pct)}%, memory ${Math.round(vitals.mem_pct)}%, disk ${Math.round(vitals.disk_pct)}%`,
      ],
      ['ports', `${vitals.listeners_count} listening`],
      ['idle', `for ${formatIdleTime(vitals.idle_for_sec)}`],
    )
  if (job) rows.push(['in progress', `${job.op}: ${job.step}, attempt ${job.attempt}`])
  if (job?.lastError) rows.push(['last error', job.lastError])
  const changes = events.map(({ at, fromState, toState, reason, actor }) => [
    at,
    { text: fromState === null ? toState : `${fromState} → ${toState}`, color: getStateColor(toState) },
    reason,
    actor,
  ])
  return [formatTable(rows), ...(changes.length > 0 ? ['', formatTable(changes)] : [])].join('\n')
}

const formatAgent = ({ state, vitals }: BoxDetail): string =>
  `${state.connected ? 'connected' : 'not connected'}${vitals ? `, version ${vitals.agent_version}` : ''}`

const formatIdleTime = (seconds: number): string =>
  seconds < 10 ? `${seconds}s` : formatDuration(seconds * 1000)

const formatDesiredState = ({ state }: BoxDetail): string =>
  state.desired === state.observed ? '' : `, desired state ${state.desired}`

function formatIsolation(isolation: Isolation | null): string {
  if (isolation === null) return '-'
  const limits = isolation.limits.length > 0 ? isolation.limits.join(', ') : 'none'
  return `${isolation.level}; network: ${isolation.network}; limits enforced: ${limits}`
}

// box show: prints the details of one box.

import type { Command } from 'commander'
import type { BoxDetail, CodingAgents, Isolation, Job } from '../../shared/api/boxes.ts'
import type { Machine } from '../../shared/api/machine.ts'
import { formatCount } from '../../shared/format-count.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { describeTier } from '../boxes/box-size.ts'
import { formatLabels } from '../boxes/labels.ts'
import { formatSchedules } from '../boxes/schedules.ts'
import { describeChecks, getProblem } from '../boxes/state-problems.ts'
import { boxCommand, replaceCommandName } from '../command-name.ts'
import type { Client } from '../connection/client.ts'
import { findBoxWithRecords } from '../connection/find-box-with-records.ts'
import type { RunAction } from '../connection/session.ts'
import { formatActor, loadMemberNames } from '../members/member-names.ts'
import { formatBoxState } from '../output/box-state.ts'
import { getStateColor } from '../output/colors.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatAge, formatBytes, formatTimestamp, formatWholeSeconds } from '../output/format.ts'
import { print, printJson } from '../output/print.ts'
import { type Cell, formatTable } from '../output/table.ts'
import { loadMounts, type MountList } from '../secrets/mounts.ts'
import { loadSnapshots } from '../snapshots/find-snapshot.ts'

export function addShowCommand(program: Command, runAction: RunAction): void {
  program
    .command('show')
    .summary('show the details of a box')
    .description(
      'Shows the state of a box, its system, its CPU, memory and disk usage, the state change in progress, and the last state ' +
        'changes. A usage that is not known for the box is "-"; without a connection to its agent, the usage is omitted.',
    )
    .argument('<name>', "the box's name or id; also of a deleted box")
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
        const { id } = await findBoxWithRecords(client, name)
        const detail = await client.getBoxDetail(id)
        if (options.json) printJson(detail)
        else {
          const [count, secrets, getUserName] = await Promise.all([
            countSnapshots(client, id),
            loadMountsIfAllowed(client, id),
            loadMemberNames(client),
          ])
          print(formatDetail(detail, { count, secrets, getUserName, now: Date.now() }))
        }
        return undefined
      }),
    )
}

/** null: the coordinator does not list snapshots, or not for this API key. */
async function countSnapshots(client: Client, boxId: string): Promise<number | null> {
  try {
    return (await loadSnapshots(client)).snapshots.filter((snapshot) => snapshot.boxId === boxId).length
  } catch (error) {
    if (error instanceof CliError && error.exitCode !== EXIT.unreachable) return null
    throw error
  }
}

/** null: the coordinator has no secrets, or not for this user or API key. */
async function loadMountsIfAllowed(client: Client, boxId: string): Promise<MountList | null> {
  try {
    return await loadMounts(client, boxId)
  } catch (error) {
    if (error instanceof CliError && error.exitCode !== EXIT.unreachable) return null
    throw error
  }
}

const formatFreezes = (count: number): string =>
  `${formatCount(count, 'time')}; the processes continued with their memory`

const RESTRICTED = 'yes: no secrets, no secret files, no cloud tokens, and links only for members'

type Context = {
  /** Of the snapshots. */
  count: number | null
  secrets: MountList | null
  getUserName: (id: string) => string
  now: number
}

function formatDetail(detail: BoxDetail, { count, secrets, getUserName, now }: Context): string {
  const { box, state, job, vitals, events } = detail
  const rows: [string, Cell][] = [
    ['name', box.hostname],
    ['id', box.id],
    [
      'state',
      {
        text: `${formatBoxState({ ...box, observedState: state.observed })} for ${formatAge(state.since, now)}${formatDesiredState(detail)}`,
        color: getStateColor(state.observed),
      },
    ],
    ['agent', formatAgent(detail)],
    ['isolation', box.kind === 'machine' ? 'none: an enrolled machine' : formatIsolation(box.isolation)],
    ...formatMachine(detail.machine),
    ...(box.image ? [['image', formatImage(box)] as [string, Cell]] : []),
    ['tier', describeTier(box.tier, detail.size)],
    ['region', `${box.region}${box.desiredRegion ? `, moving to ${box.desiredRegion}` : ''}`],
    ['created', `${formatTimestamp(box.createdAt)} (${formatAge(box.createdAt, now)} ago)`],
  ]
  const labels = formatLabels(box.labels)
  if (labels.length > 0) rows.push(['labels', labels.join(', ')])
  rows.push(...formatSchedules(box, now))
  if (count) rows.push(['snapshots', `${count} (${boxCommand()} snapshots ${box.hostname})`])
  if (detail.pausesSurvived > 0) rows.push(['frozen', formatFreezes(detail.pausesSurvived)])
  if (box.restricted) rows.push(['restricted', RESTRICTED])
  if (detail.environment) rows.push(['environment', formatEnvironmentPin(detail.environment)])
  // The row has only the names: the values are often secrets. --json also prints the values.
  if (detail.envVars.length > 0) rows.push(['variables', detail.envVars.map(({ name }) => name).join(', ')])
  if (secrets !== null && secrets.mounts.length > 0)
    rows.push(['secrets', formatMounts(secrets, box.hostname)])
  // The last heartbeat of a box that is not connected does not describe it now.
  if (vitals && state.connected)
    rows.push(
      [
        'usage',
        `CPU ${formatPercent(vitals.cpu_pct)}, memory ${formatPercent(vitals.mem_pct)}, disk ${formatPercent(vitals.disk_pct)}`,
      ],
      [
        'ports',
        `${vitals.listeners_count} listening${vitals.listeners_count > 0 ? ` (${boxCommand()} ports ${box.hostname})` : ''}`,
      ],
      ['idle', `for ${formatWholeSeconds(vitals.idle_for_sec)}`],
      ...formatCodingAgents(vitals.coding_agents),
    )
  if (job) rows.push(['in progress', formatJob(job, now)])
  const problem = getProblem(detail)
  if (problem !== null)
    rows.push(['last error', problem.reason], ['check', replaceCommandName(describeChecks(box))])
  const changes = events.map(({ at, fromState, toState, reason, actor }) => [
    formatTimestamp(at),
    {
      text: fromState === null || fromState === toState ? toState : `${fromState} → ${toState}`,
      color: getStateColor(toState),
    },
    reason,
    formatActor(actor, getUserName),
  ])
  return [formatTable(rows), ...(changes.length > 0 ? ['', formatTable(changes)] : [])].join('\n')
}

const formatImage = ({ image, imageDigest }: BoxDetail['box']): string =>
  `${image}${imageDigest === null ? '' : `, ${imageDigest}`}`

function formatEnvironmentPin(environment: NonNullable<BoxDetail['environment']>): string {
  const { name, versionNo, latestVersionNo, deletedAt } = environment
  const pin = `${name}, version ${versionNo}`
  if (deletedAt) return `${pin}; deleted at ${formatTimestamp(deletedAt)}, the box keeps its version`
  if (versionNo === latestVersionNo) return pin
  return `${pin} of ${latestVersionNo} (${boxCommand()} environments upgrade ${name})`
}

/** A failed test is the reason of every request that is refused. */
function formatMounts({ mounts, broker }: MountList, hostname: string): string {
  const names = mounts.map(({ envName }) => envName).join(', ')
  return broker.state === 'failed' ? `${names}; they do not work (${boxCommand()} mounts ${hostname})` : names
}

function formatJob({ op, step, attempt, nextRetryAt }: Job, now: number): string {
  const retry = nextRetryAt === null ? 0 : Date.parse(nextRetryAt) - now
  return `${op}: ${step}, attempt ${attempt}${retry > 0 ? `, next attempt in ${formatWholeSeconds(Math.ceil(retry / 1000))}` : ''}`
}

function formatCodingAgents(codingAgents: CodingAgents | undefined): [string, string][] {
  if (codingAgents === undefined) return []
  const states = Object.entries(codingAgents)
    // A newer coordinator may have other fields.
    .filter(([, readiness]) => typeof readiness === 'string')
    .map(([name, readiness]) => `${name}: ${readiness.replaceAll('_', ' ')}`)
  return [['coding agents', states.join(', ')]]
}

const formatPercent = (value: number | null): string => (value === null ? '-' : `${Math.round(value)}%`)

/** The system, and the size of the box. */
function formatMachine(machine: Machine | null): [string, string][] {
  if (machine === null) return []
  const { os, kernel, arch, cpuModel, cpuCount, memoryBytes, diskBytes } = machine
  const cpus = cpuCount === null ? '-' : formatCount(cpuCount, 'CPU')
  const sizes = [memoryBytes, diskBytes].map((bytes) => (bytes === null ? '-' : formatBytes(bytes)))
  return [
    ['system', [os, kernel, arch].filter((text) => text !== '').join(', ')],
    ['machine', `${cpus}${cpuModel ? ` (${cpuModel})` : ''}, memory ${sizes[0]}, disk ${sizes[1]}`],
  ]
}

const formatAgent = ({ state, vitals }: BoxDetail): string =>
  `${state.connected ? 'connected' : 'not connected'}${vitals ? `, version ${vitals.agent_version}` : ''}`

const formatDesiredState = ({ state }: BoxDetail): string =>
  state.desired === state.observed ? '' : `, desired state ${state.desired}`

function formatIsolation(isolation: Isolation | null): string {
  if (isolation === null) return '-'
  const limits = isolation.limits.length > 0 ? isolation.limits.join(', ') : 'none'
  return `${isolation.level}; network: ${isolation.network}; limits enforced: ${limits}`
}

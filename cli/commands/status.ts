// box status: shows whether the coordinator runs, and counts its boxes by state.

import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import type { CoordinatorRecord, ReplicaStatus } from '../../shared/coordinator-process.ts'
import { VERSION } from '../../shared/version.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import { openSession, type RunLocalAction } from '../connection/session.ts'
import { listReplicas } from '../local/list-replicas.ts'
import { type Readiness, readReadiness } from '../local/readiness.ts'
import { type SelectedCoordinator, selectCoordinator } from '../local/select-coordinator.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatDuration } from '../output/format.ts'
import { print, printJson, printMessage } from '../output/print.ts'
import { formatTable } from '../output/table.ts'

/** The exit code of `systemctl status` for a service that does not run. */
const EXIT_NOT_RUNNING = 3

type Status = {
  running: boolean
  state: Readiness | 'stopped'
  /** null: unknown, or not on this machine. */
  pid: number | null
  url: string | null
  coordinatorVersion: string | null
  cliVersion: string
  dataDirectory: string | null
  /** The number of boxes by observed state; null: unknown. */
  boxes: Record<string, number> | null
  /** The coordinators that share the database; null: this one uses it alone, or they are unknown. */
  replicas: ReplicaStatus[] | null
}

export function addStatusCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('status')
    .summary('show whether the coordinator is running')
    .description(
      'Shows whether the coordinator is running, with its pid, URL, version and data directory, and the number of boxes ' +
        'in each state; with several replicas, also those. For a coordinator at BOXWOOD_URL, pid, version, data directory and replicas are unknown.',
    )
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Exit codes: 0 when the coordinator is running, 3 when it is not.

Examples:
  box status
  box status --json | jq .boxes
  box status >/dev/null || box up`,
    )
    .action((options: JsonOption) =>
      runLocalAction(async (signal) => {
        const status = await readStatus(selectCoordinator(process.env, process.cwd()), signal)
        if (options.json) printJson(status)
        else print(formatStatus(status))
        return status.running ? EXIT.ok : EXIT_NOT_RUNNING
      }),
    )
}

async function readStatus(selected: SelectedCoordinator, signal: AbortSignal): Promise<Status> {
  const record = selected.isLocal ? selected.running : null
  const url = selected.isLocal ? (record?.url ?? null) : selected.url
  const { state, boxes } = await readState(record, url, signal)
  return {
    // A process that does not respond is still running.
    running: record !== null || state === 'ready',
    state,
    pid: record?.pid ?? null,
    url,
    coordinatorVersion: record?.version ?? null,
    cliVersion: VERSION,
    dataDirectory: selected.isLocal ? selected.dataDir : null,
    boxes,
    replicas: await readReplicas(record, signal),
  }
}

async function readReplicas(
  record: CoordinatorRecord | null,
  signal: AbortSignal,
): Promise<ReplicaStatus[] | null> {
  const replicas = await listReplicas(record, signal)
  if (replicas === null || !('problem' in replicas)) return replicas
  printMessage(replicas.problem)
  return null
}

async function readState(
  record: CoordinatorRecord | null,
  url: string | null,
  signal: AbortSignal,
): Promise<Pick<Status, 'state' | 'boxes'>> {
  if (url === null) return { state: 'stopped', boxes: null }
  // A proxy at BOXWOOD_URL may serve only the API.
  const state = record === null ? 'ready' : await readReadiness(url, signal)
  if (state !== 'ready') return { state, boxes: null }
  try {
    return { state, boxes: await countBoxes(signal) }
  } catch (error) {
    if (signal.aborted || !(error instanceof CliError)) throw error
    printMessage(error.message)
    return { state: error.exitCode === EXIT.unreachable ? 'not responding' : state, boxes: null }
  }
}

async function countBoxes(signal: AbortSignal): Promise<Record<string, number>> {
  const { client } = openSession(signal)
  const { boxes } = await client.request<{ boxes: Box[] }>('GET', '/boxes?live=1')
  const counts: Record<string, number> = {}
  for (const { observedState } of boxes) counts[observedState] = (counts[observedState] ?? 0) + 1
  return counts
}

function formatStatus(status: Status): string {
  const { state, running, pid, url, coordinatorVersion, cliVersion, dataDirectory, boxes, replicas } = status
  const versions = [...(coordinatorVersion ? [`coordinator ${coordinatorVersion}`] : []), `box ${cliVersion}`]
  const stateText = state === 'ready' ? 'running' : running ? `running, ${state}` : 'not running'
  const rows: [string, string][] = [['coordinator', pid === null ? stateText : `${stateText} (pid ${pid})`]]
  if (url !== null) rows.push(['url', url])
  rows.push(['version', versions.join(', ')])
  if (dataDirectory !== null) rows.push(['data directory', dataDirectory])
  if (boxes !== null) {
    const counts = Object.entries(boxes).map(([boxState, count]) => `${count} ${boxState}`)
    rows.push(['boxes', counts.length > 0 ? counts.join(', ') : 'none'])
  }
  const text = [
    formatTable(rows),
    ...(replicas !== null && replicas.length > 1 ? [formatReplicas(replicas)] : []),
  ]
  const hint = `Start it with \`${boxCommand()} up\`. \`${boxCommand()} down\` stops boxes that run without a coordinator.`
  if (!running && dataDirectory !== null) text.push(hint)
  return text.join('\n')
}

const formatReplicas = (replicas: readonly ReplicaStatus[]): string =>
  formatTable([
    ['replica', 'version', 'host', 'agents', 'lease extended'],
    ...replicas.map(({ name, version, host, tunnels, leaseAgeMs, isAlive }) => [
      name,
      version,
      host ?? '-',
      tunnels === null ? '-' : String(tunnels),
      `${formatDuration(leaseAgeMs)} ago${isAlive ? '' : '; not alive'}`,
    ]),
  ])

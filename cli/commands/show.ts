// box show: everything about one box.
import type { Command } from 'commander'
import type { BoxDetail, Isolation } from '../../shared/api/boxes.ts'
import { type JsonOption, jsonOption } from '../options.ts'
import { age, print, printJson, table } from '../output.ts'
import type { Run } from '../session.ts'

export function addShow(program: Command, run: Run): void {
  program
    .command('show')
    .summary('show one box')
    .description('Shows one box: its state, vitals, the change in flight, and its last state changes.')
    .argument('<name>', 'its name or id')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box show fig
  box show fig --json | jq .vitals`,
    )
    .action((name: string, options: JsonOption) =>
      run(async ({ client }) => {
        const detail = await client.boxDetail((await client.findBox(name)).id)
        if (options.json) printJson(detail)
        else print(describe(detail, Date.now()))
        return undefined
      }),
    )
}

function describe(detail: BoxDetail, now: number): string {
  const { box, state, job, vitals, events } = detail
  const facts: [string, string][] = [
    ['name', box.hostname],
    ['id', box.id],
    ['state', `${state.observed} for ${age(state.since, now)}${wanted(detail)}`],
    ['agent', state.connected ? 'connected' : 'not connected'],
    ['isolation', isolationOf(box.isolation)],
    ['tier', box.tier],
    ['region', box.desiredRegion ? `${box.region}, moving to ${box.desiredRegion}` : box.region],
    ['created', `${box.createdAt} (${age(box.createdAt, now)} ago)`],
  ]
  if (box.pauseAt) facts.push(['pauses at', box.pauseAt])
  if (box.autoPauseMin !== null) facts.push(['pauses when', `idle for ${box.autoPauseMin} minutes`])
  if (box.restricted) facts.push(['restricted', 'safe for third parties'])
  // Names only: values are often secrets, and --json has them.
  if (detail.envVars.length > 0) facts.push(['variables', detail.envVars.map(({ name }) => name).join(', ')])
  if (vitals)
    facts.push([
      'vitals',
      `cpu ${Math.round(vitals.cpu_pct)}%, memory ${Math.round(vitals.mem_pct)}%, disk ${Math.round(vitals.disk_pct)}%, ` +
        `${vitals.listeners_count} listening, idle for ${vitals.idle_for_sec}s, agent ${vitals.agent_version}`,
    ])
  if (job) facts.push(['in flight', `${job.op}: ${job.step}, attempt ${job.attempt}`])
  if (job?.lastError) facts.push(['last error', job.lastError])
  const changes = events.map(({ at, fromState, toState, reason, actor }) => [
    at,
    fromState === null ? toState : `${fromState} → ${toState}`,
    reason,
    actor,
  ])
  return [table(facts), ...(changes.length > 0 ? ['', table(changes)] : [])].join('\n')
}

const wanted = ({ state }: BoxDetail): string =>
  state.desired === state.observed ? '' : `, wanted ${state.desired}`

function isolationOf(isolation: Isolation | null): string {
  if (isolation === null) return '-'
  const limits = isolation.limits.length > 0 ? isolation.limits.join(', ') : 'nothing'
  return `${isolation.level}; limits enforced: ${limits}`
}

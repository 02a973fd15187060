// Loads the team status (spec §2.10). Every query reads the rows of the response, at most once per box.
import type { Logger } from 'pino'
import type { Vitals } from '../../../shared/api/boxes.ts'
import type { Member } from '../../../shared/api/members.ts'
import type { TeamBox, TeamMember, TeamStatus } from '../../../shared/api/team.ts'
import { type Clock, toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { listNewestEvents } from '../../audit/newest-events.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import { listNewestCommandTimes } from '../../history/commands/newest-times.ts'
import type { Actor } from '../../http/actor.ts'
import { getVisibility } from '../../http/visibility.ts'
import { listUserNames } from '../../identity/lookups.ts'
import { listTeamBoxes, type TeamBoxRow } from '../store/box-lists.ts'
import { findCycle } from './cycle.ts'
import { listLastPrompts, upsertLastPrompt } from './store.ts'

export type TeamServiceOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  members: { list(actor: Actor): Promise<Member[]> }
  /** The heartbeat in memory, which may be newer than the stored one. */
  latestHeartbeat(boxId: string): { vitals: Vitals; at: number } | undefined
  /** The open connections to the box by the user who opened them. null: keys without a user. */
  countAttachments(boxId: string): ReadonlyMap<string | null, number>
}

export type TeamService = {
  load(actor: Actor): Promise<TeamStatus>
  /** Records that the box has accepted a prompt. A failure is logged: the prompt is being run. */
  recordPrompt(box: { id: string; workspace_id: string }): Promise<void>
}

/** There is no billing. */
const NO_SPEND = 0

type Context = {
  latestHeartbeat: TeamServiceOptions['latestHeartbeat']
  owners: ReadonlyMap<string, { name: string; email: string | null }>
  prompts: ReadonlyMap<string, number>
  commands: ReadonlyMap<string, number>
  sessions: number
}

export function createTeamService(options: TeamServiceOptions): TeamService {
  const { db, clock, log, members, latestHeartbeat, countAttachments } = options

  async function load(actor: Actor): Promise<TeamStatus> {
    const isOwn = actor.role === 'contractor'
    const rows = await listTeamBoxes(db, getVisibility(actor))
    const ids = rows.map(({ id }) => id)
    const ownerIds = [...new Set(rows.map((row) => row.owner_user_id))]
    const [owners, prompts, commands, team, recent] = await Promise.all([
      listUserNames(db, ownerIds),
      listLastPrompts(db, ids),
      listNewestCommandTimes(db, ids),
      isOwn ? [] : members.list(actor),
      listNewestEvents(db, actor.workspaceId, { boxIds: isOwn ? ids : null, limit: LIMITS.teamEvents }),
    ])
    const attachments = new Map(ids.map((id) => [id, countAttachments(id)]))
    const boxes = rows.map((row) =>
      presentBox(row, {
        latestHeartbeat,
        owners,
        prompts,
        commands,
        sessions: sum(attachments.get(row.id)?.values() ?? []),
      }),
    )
    const now = clock.now()
    return {
      now: toTimestamp(now),
      cycle: findCycle(now),
      scope: isOwn ? 'own' : 'workspace',
      boxes,
      members: team.map((member) => presentMember(member, rows, [...attachments.values()])),
      totals: {
        spendTodayMicros: NO_SPEND,
        spendCycleMicros: NO_SPEND,
        running: boxes.filter(({ observedState }) => observedState === 'running').length,
        sessions: sum(boxes.map(({ sessions }) => sessions)),
      },
      recent,
    }
  }

  async function recordPrompt({ id, workspace_id }: { id: string; workspace_id: string }): Promise<void> {
    const row = { box_id: id, workspace_id, at: clock.now() }
    await transaction(db, (trx) => upsertLastPrompt(trx, row)).catch((err: unknown) =>
      log.error({ err, boxId: id }, 'failed to record the time of a prompt'),
    )
  }

  return { load, recordPrompt }
}

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, number) => total + number, 0)

function presentBox(row: TeamBoxRow, context: Context): TeamBox {
  const heartbeat = context.latestHeartbeat(row.id)
  const stored = row.vitals === null ? null : (JSON.parse(row.vitals) as Vitals)
  const vitals = row.observed_state === 'running' ? (heartbeat?.vitals ?? stored) : null
  const owner = context.owners.get(row.owner_user_id)
  return {
    id: row.id,
    hostname: row.hostname,
    tier: row.tier,
    desiredState: row.desired_state,
    observedState: row.observed_state,
    ownerUserId: row.owner_user_id,
    ownerName: owner?.name ?? null,
    ownerEmail: owner?.email ?? null,
    idleForSec: vitals?.idle_for_sec ?? null,
    cpuPct: vitals?.cpu_pct ?? null,
    memPct: vitals?.mem_pct ?? null,
    lastHeartbeatAt: toTimestampOrNull(heartbeat?.at ?? row.last_heartbeat_at),
    sessions: context.sessions,
    lastPromptAt: toTimestampOrNull(context.prompts.get(row.id) ?? null),
    lastExecAt: toTimestampOrNull(context.commands.get(row.id) ?? null),
    spendTodayMicros: NO_SPEND,
    spendCycleMicros: NO_SPEND,
  }
}

const presentMember = (
  { id, name, email, role, lastActiveAt }: Member,
  boxes: readonly TeamBoxRow[],
  attachments: readonly ReadonlyMap<string | null, number>[],
): TeamMember => ({
  userId: id,
  name,
  email,
  role,
  boxes: boxes.filter((box) => box.owner_user_id === id).length,
  sessions: sum(attachments.map((byUser) => byUser.get(id) ?? 0)),
  spendCycleMicros: NO_SPEND,
  lastActiveAt,
})

// Loads the team status (spec §2.10). Every query reads the rows of the response, at most once per box.

import type { Logger } from 'pino'
import type { Vitals } from '../../shared/api/boxes.ts'
import type { Member } from '../../shared/api/members.ts'
import type { TeamBox, TeamMember, TeamStatus } from '../../shared/api/team.ts'
import { type Clock, toTimestamp, toTimestampOrNull } from '../../shared/clock.ts'
import { LIMITS } from '../../shared/limits.ts'
import { listNewestEvents } from '../audit/newest-events.ts'
import { findCycle } from '../base/billing-cycle.ts'
import { listTeamBoxes, type TeamBoxRow } from '../boxes/lookups.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { listNewestCommandTimes } from '../history/commands/newest-times.ts'
import type { Actor } from '../http/actor.ts'
import { joinFields, readPages, stringifyPages } from '../http/json-pages.ts'
import { getVisibility } from '../http/visibility.ts'
import { listUserNames } from '../identity/lookups.ts'
import type { CountSessions, UserCounts } from './count-sessions.ts'
import { listLastPrompts, upsertLastPrompt } from './store.ts'

export type TeamServiceOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  members: { list(actor: Actor): Promise<Member[]> }
  /** The heartbeat in memory, which may be newer than the stored one. */
  latestHeartbeat(boxId: string): { vitals: Vitals; at: number } | undefined
  countSessions: CountSessions
  /** null: billing is off. */
  billing: { finances: { loadSpend(workspaceId: string): Promise<TeamSpend> } } | null
}

export type TeamService = {
  /** Returns a TeamStatus as JSON text. */
  load(actor: Actor): Promise<string>
  /** Records that the box has accepted a prompt. A failure is logged: the prompt is being run. */
  recordPrompt(box: { id: string; workspace_id: string }): Promise<void>
}

/** Micro-dollars of boxes by box id, and of members by user id. */
export type TeamSpend = {
  todayByBox: ReadonlyMap<string, number>
  cycleByBox: ReadonlyMap<string, number>
  cycleByUser: ReadonlyMap<string, number>
}

const NO_SPEND: TeamSpend = { todayByBox: new Map(), cycleByBox: new Map(), cycleByUser: new Map() }

const NO_SESSIONS: UserCounts = new Map()

/** The counts of the boxes that have been read. */
type Counts = {
  boxIds: string[]
  running: number
  /** By owner. */
  boxes: Map<string, number>
  /** The open connections by the user who opened them. */
  sessions: Map<string | null, number>
}

export function createTeamService(options: TeamServiceOptions): TeamService {
  const { db, clock, log, members, latestHeartbeat, countSessions, billing } = options

  async function presentPage(
    rows: readonly TeamBoxRow[],
    counts: Counts,
    spend: TeamSpend,
  ): Promise<TeamBox[]> {
    const ids = rows.map(({ id }) => id)
    const [owners, prompts, commands, sessionsByBox] = await Promise.all([
      listUserNames(db, [...new Set(rows.map((row) => row.owner_user_id))]),
      listLastPrompts(db, ids),
      listNewestCommandTimes(db, ids),
      countSessions(ids),
    ])
    counts.boxIds.push(...ids)
    return rows.map((row) => {
      const sessions = sessionsByBox.get(row.id) ?? NO_SESSIONS
      for (const [userId, count] of sessions) increase(counts.sessions, userId, count)
      increase(counts.boxes, row.owner_user_id, 1)
      if (row.observed_state === 'running') counts.running += 1
      return presentBox(row, {
        heartbeat: latestHeartbeat(row.id),
        owner: owners.get(row.owner_user_id),
        promptAt: prompts.get(row.id),
        commandAt: commands.get(row.id),
        sessions: sum(sessions.values()),
        spend,
      })
    })
  }

  async function* listPages(actor: Actor, counts: Counts, spend: TeamSpend): AsyncGenerator<TeamBox[]> {
    for await (const rows of readPages((page) => listTeamBoxes(db, getVisibility(actor), page)))
      yield presentPage(rows, counts, spend)
  }

  async function load(actor: Actor): Promise<string> {
    const isOwn = actor.role === 'contractor'
    const counts: Counts = { boxIds: [], running: 0, boxes: new Map(), sessions: new Map() }
    const spend = (await billing?.finances.loadSpend(actor.workspaceId)) ?? NO_SPEND
    const boxes = await stringifyPages(listPages(actor, counts, spend))
    const [team, recent] = await Promise.all([
      isOwn ? [] : members.list(actor),
      listNewestEvents(db, actor.workspaceId, {
        boxIds: isOwn ? counts.boxIds : null,
        limit: LIMITS.teamEvents,
      }),
    ])
    /** A contractor sees what their boxes have cost; the others also what deleted boxes have cost. */
    const sumVisible = (amounts: ReadonlyMap<string, number>): number =>
      sum(isOwn ? counts.boxIds.map((id) => amounts.get(id) ?? 0) : amounts.values())
    const now = clock.now()
    const status: Omit<TeamStatus, 'boxes'> = {
      now: toTimestamp(now),
      cycle: findCycle(now),
      scope: isOwn ? 'own' : 'workspace',
      members: team.map((member) => presentMember(member, counts, spend)),
      totals: {
        spendTodayMicros: sumVisible(spend.todayByBox),
        spendCycleMicros: sumVisible(spend.cycleByBox),
        running: counts.running,
        sessions: sum(counts.sessions.values()),
      },
      recent,
    }
    return joinFields({ boxes }, status)
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

const increase = <K>(counts: Map<K, number>, key: K, by: number) =>
  void counts.set(key, (counts.get(key) ?? 0) + by)

type BoxContext = {
  heartbeat: ReturnType<TeamServiceOptions['latestHeartbeat']>
  owner: { name: string; email: string | null } | undefined
  promptAt: number | undefined
  commandAt: number | undefined
  sessions: number
  spend: TeamSpend
}

function presentBox(row: TeamBoxRow, { heartbeat, owner, ...context }: BoxContext): TeamBox {
  const stored = row.vitals === null ? null : (JSON.parse(row.vitals) as Vitals)
  const vitals = row.observed_state === 'running' ? (heartbeat?.vitals ?? stored) : null
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
    lastPromptAt: toTimestampOrNull(context.promptAt ?? null),
    lastExecAt: toTimestampOrNull(context.commandAt ?? null),
    spendTodayMicros: context.spend.todayByBox.get(row.id) ?? 0,
    spendCycleMicros: context.spend.cycleByBox.get(row.id) ?? 0,
  }
}

const presentMember = (
  { id, name, email, role, lastActiveAt }: Member,
  { boxes, sessions }: Counts,
  { cycleByUser }: TeamSpend,
): TeamMember => ({
  userId: id,
  name,
  email,
  role,
  boxes: boxes.get(id) ?? 0,
  sessions: sessions.get(id) ?? 0,
  spendCycleMicros: cycleByUser.get(id) ?? 0,
  lastActiveAt,
})

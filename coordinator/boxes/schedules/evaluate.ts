// Evaluates a due schedule of a box: a pure function of the box, the settings and the time.
import type { BoxRow } from '../../db/schema.ts'
import type { BoxScheduleKind } from '../lifecycle/update-schedules.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** A box in transition is evaluated again after this time. */
const TRANSITION_MS = MINUTE_MS

export type ScheduleSettings = {
  /** How long a suspended box stays frozen. */
  freezeMs: number
  /** How long a box is suspended before it sleeps deeply; 0: boxes do not sleep. */
  deepSleepMs: number
}

export type Facts = {
  settings: ScheduleSettings
  now: number
  /** The last activity that the agent has reported; null: unknown. */
  lastActiveAt: number | null
  /** When the newest automatic snapshot was requested. Failed ones do not count. */
  lastAutoSnapshotAt: number | null
  /** Frozen boxes must be stopped, which frees their memory. */
  isMemoryScarce: boolean
  /** A change of the box's state is in progress. */
  hasJob: boolean
}

/** act: make the change now. notBefore: evaluate again at this time. none: the box has no such schedule any more. */
export type Decision = 'act' | 'none' | { notBefore: number }

const actAt = (time: number, now: number): Decision => (time <= now ? 'act' : { notBefore: time })

const isRunning = ({ desired_state: desired, observed_state: observed }: BoxRow): boolean =>
  desired === 'running' && observed === 'running'

const isSuspended = ({ desired_state: desired, observed_state: observed }: BoxRow): boolean =>
  desired === 'suspended' && observed === 'suspended'

const EVALUATIONS: Record<BoxScheduleKind, (box: BoxRow, facts: Facts) => Decision> = {
  /** The pause is due even while the box is in transition: the box is suspended when the transition is complete. */
  pause: ({ pause_at: pauseAt }, { now }) => (pauseAt === null ? 'none' : actAt(pauseAt, now)),

  /** Due in every state, also while the box is in transition. */
  delete: ({ delete_at: deleteAt }, { now }) => (deleteAt === null ? 'none' : actAt(deleteAt, now)),

  /** Idle time counts from the last activity, and at the earliest from when the box became running. */
  auto_pause(box, { now, lastActiveAt, hasJob }) {
    const { auto_pause_min: minutes, state_since: since } = box
    if (minutes === null) return 'none'
    if (hasJob || !isRunning(box)) return { notBefore: now + TRANSITION_MS }
    return actAt(Math.max(since, lastActiveAt ?? 0) + minutes * MINUTE_MS, now)
  },

  /** A suspended box gets a snapshot only if it has run since its last automatic snapshot. */
  auto_snapshot(box, { now, lastAutoSnapshotAt }) {
    const { auto_snapshot_hours: hours, observed_state: state, state_since: since } = box
    if (hours === null) return 'none'
    const isUnchanged = state === 'deep_sleep' || (state === 'suspended' && since < (lastAutoSnapshotAt ?? 0))
    if (isUnchanged) return { notBefore: now + hours * HOUR_MS }
    return state === 'running' || state === 'degraded' || state === 'suspended'
      ? 'act'
      : { notBefore: now + TRANSITION_MS }
  },

  stop_frozen(box, { settings, now, isMemoryScarce, hasJob }) {
    if (box.suspended_as !== 'frozen' || box.observed_state !== 'suspended') return 'none'
    if (hasJob || !isSuspended(box)) return { notBefore: now + TRANSITION_MS }
    return isMemoryScarce ? 'act' : actAt(box.state_since + settings.freezeMs, now)
  },

  deep_sleep(box, { settings, now, hasJob }) {
    if (box.observed_state !== 'suspended' || settings.deepSleepMs === 0) return 'none'
    if (hasJob || !isSuspended(box)) return { notBefore: now + TRANSITION_MS }
    return actAt(box.state_since + settings.deepSleepMs, now)
  },
}

export const evaluate = (kind: BoxScheduleKind, box: BoxRow, facts: Facts): Decision =>
  box.desired_state === 'terminated' ? 'none' : EVALUATIONS[kind](box, facts)

/** Returns when a schedule is evaluated after its change, which may have failed or may be in progress. */
export const nextEvaluation = (kind: BoxScheduleKind, box: BoxRow, now: number): number =>
  kind === 'auto_snapshot' ? now + (box.auto_snapshot_hours ?? 1) * HOUR_MS : now + TRANSITION_MS
